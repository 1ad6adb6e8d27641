//! Statuses and other enumerations of messages.

use crate::channel::named;

named! {
    /// The public status. Its number is also its rank: facts only raise it (see [`crate::lifecycle`]).
    #[cfg_attr(feature = "openapi", schema(as = MessageStatus, description = "Status of a message."))]
    Status {
        /// Waits for its scheduled time.
        Scheduled = 1 "scheduled",
        /// Accepted; waits to be sent.
        Queued = 2 "queued",
        /// An attempt was started.
        Sending = 3 "sending",
        /// A provider accepted it.
        Sent = 4 "sent",
        /// Failed on every route.
        Failed = 5 "failed",
        Delivered = 6 "delivered",
        Read = 7 "read",
        /// Stopped before it was sent to a provider.
        Cancelled = 8 "cancelled",
        /// Inbound message.
        Received = 9 "received",
    }
}

named! {
    /// Direction of a message.
    #[cfg_attr(feature = "openapi", schema(as = MessageDirection))]
    Direction {
        /// Sent by nuncio.
        Outbound = 1 "outbound",
        /// Received by nuncio.
        Inbound = 2 "inbound",
    }
}

named! {
    /// What to do after an attempt with an unknown outcome.
    #[derive(Default)]
    OnUnknown {
        /// Retry, and mark the message as a possible duplicate.
        #[default]
        Resend = 1 "resend",
        /// Wait for a human decision.
        Hold = 2 "hold",
        /// Give up.
        Fail = 3 "fail",
    }
}

named! {
    /// Why a message waits for a human decision.
    HeldReason {
        /// The outcome of an attempt is unknown.
        UnknownOutcome = 1 "unknown_outcome",
        /// Its scheduled time is too far in the past to send it safely.
        PastDue = 2 "past_due",
        /// The database was more than an hour old when the node started: it might be a restored copy whose messages were sent since.
        StaleDatabase = 3 "stale_database",
    }
}

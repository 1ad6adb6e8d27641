//! Limits that callers can reach. Lengths count Unicode code points unless a name says bytes.

use std::time::Duration;

/// Maximum body of every endpoint except message sending and the calls of providers, in bytes.
pub const BODY_BYTES: usize = 1024 * 1024;
/// Maximum body of a provider's call, in bytes. Meta sends up to 3 MB.
pub const CALLBACK_BYTES: usize = 4 * 1024 * 1024;
/// Maximum body of `POST /v1/messages`, in bytes.
pub const MESSAGE_BODY_BYTES: usize = 56 * 1024 * 1024;
/// Maximum messages per batch.
pub const BATCH: usize = 1_000;
/// Message content larger than this many bytes goes to the spool instead of the message row.
pub const SPOOL_THRESHOLD_BYTES: usize = 256 * 1024;
/// How much text of such a message lists and events show, in bytes.
pub const SPOOLED_TEXT_SHOWN_BYTES: usize = 32 * 1024;
/// Maximum nesting of a JSON body.
pub const JSON_DEPTH: usize = 32;
/// Maximum number of values in a JSON body: members, items, and the body itself. A value takes far more memory than its two bytes of JSON.
pub const JSON_VALUES: usize = 100_000;
/// Maximum length of a string without a limit of its own.
pub const STRING: usize = 2_048;
/// Field errors listed by one response.
pub const FIELD_ERRORS: usize = 100;

/// Wrong keys and wrong invitation tokens per address and minute.
pub const GUESSES: u32 = 60;

/// Default page size.
pub const PAGE_DEFAULT: u32 = 50;
/// Largest page.
pub const PAGE_MAX: u32 = 100;
/// Maximum rows scanned per list request if no index serves its filters.
pub const SCAN_ROWS: u32 = 10_000;

/// Email subject.
pub const SUBJECT: usize = 998;
/// Attachments of one email.
pub const ATTACHMENTS: usize = 50;
/// Total size of an email's attachments, decoded, in bytes.
pub const ATTACHMENT_BYTES: usize = 40 * 1024 * 1024;
/// Attachment file name.
pub const FILENAME: usize = 255;
pub const EMAIL_TEXT_BYTES: usize = 1024 * 1024;
pub const EMAIL_HTML_BYTES: usize = 2 * 1024 * 1024;
/// Text to speak.
pub const VOICE_TEXT: usize = 4_000;
pub const SMS_TEXT: usize = 1_600;
/// WhatsApp and Telegram text.
pub const CHAT_TEXT: usize = 4_096;
/// Captions and bodies of interactive messages.
pub const CAPTION: usize = 1_024;
pub const INSTAGRAM_TEXT_BYTES: usize = 1_000;
/// Buttons of one message.
pub const BUTTONS: usize = 3;
pub const BUTTON_TITLE: usize = 20;
/// Button or row id.
pub const BUTTON_ID: usize = 256;
pub const LIST_SECTIONS: usize = 10;
/// Rows of a list in all.
pub const LIST_ROWS: usize = 10;
/// Row and section title.
pub const ROW_TITLE: usize = 24;
pub const ROW_DESCRIPTION: usize = 72;
/// The button that opens a list, and a call-to-action's label.
pub const LIST_BUTTON: usize = 20;
/// Header and footer texts.
pub const HEADER_FOOTER: usize = 60;

/// Name of a contact.
pub const DISPLAY_NAME: usize = 200;
/// Label of a contact's channel.
pub const CHANNEL_LABEL: usize = 50;
/// Channels of a new contact; an existing contact with this many cannot get more.
pub const CONTACT_CHANNELS: usize = 20;
/// Channels of a merged contact.
pub const MERGED_CHANNELS: usize = 5 * CONTACT_CHANNELS;
/// How long a download link is valid.
pub const DOWNLOAD_LINK: Duration = Duration::from_secs(15 * 60);
/// How long after the newest inbound message WhatsApp allows free text, and how long a contact must be silent for the next message to open
/// a new conversation.
pub const CONVERSATION: Duration = Duration::from_secs(86_400);

pub const METADATA_KEYS: usize = 50;
/// `metadata` as JSON, in bytes.
pub const METADATA_BYTES: usize = 16 * 1024;
/// Nesting of `metadata`.
pub const METADATA_DEPTH: usize = 5;
pub const IDEMPOTENCY_KEY: usize = 255;
/// How long an idempotency key is kept after its resource is final.
pub const IDEMPOTENCY_RETENTION: Duration = Duration::from_secs(7 * 86_400);

/// Number of attempts with an unknown outcome after which a message is held, even with `onUnknown: resend`: each can be another copy.
pub const UNKNOWN_ATTEMPTS: usize = 5;

/// Shortest `validitySeconds`.
pub const VALIDITY_MIN: u64 = 30;
/// Longest `validitySeconds`.
pub const VALIDITY_MAX: u64 = 604_800;
/// Default validity, in seconds.
pub const VALIDITY_DEFAULT: u64 = 86_400;
/// Default validity of an email, in seconds.
pub const VALIDITY_DEFAULT_EMAIL: u64 = 259_200;
/// Maximum time from now to `scheduledAt` of a message.
pub const SCHEDULE_AHEAD: Duration = Duration::from_secs(30 * 86_400);
/// A message overdue by more than this is held for a human decision.
pub const PAST_DUE: Duration = Duration::from_secs(3_600);
/// A retry that would come after the validity is made so long before its end.
pub const LAST_RETRY: Duration = Duration::from_secs(5);
/// Retry interval of a paused broadcast's message that cannot be withdrawn because a provider has an attempt of it.
pub const PAUSED_LOOK: Duration = Duration::from_secs(30);
/// Maximum time that a message is held.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Range of `fallbackAfterSeconds`.
pub const FALLBACK_AFTER: (u64, u64) = (5, 86_400);
/// Default time to wait for a receipt.
pub const RECEIPT_WAIT: Duration = Duration::from_secs(86_400);

pub const SENDER_NAME: usize = 100;
/// Name of an API key.
pub const KEY_NAME: usize = 100;
pub const PROJECT_NAME: usize = 100;
/// URL of a webhook, picture or site, in bytes.
pub const URL_BYTES: usize = 2_048;
/// Largest `dailySpendLimit`, in US dollars.
pub const DAILY_SPEND_MAX: i64 = 1_000_000_000;
/// Range of `throttle.messagesPerSecond`.
pub const THROTTLE_RATE: (f64, f64) = (0.001, 10_000.0);
/// Largest `throttle.burst`.
pub const THROTTLE_BURST: u32 = 100_000;
/// Concurrent event streams of an environment, per node.
pub const EVENT_STREAMS: usize = 50;
/// Concurrent read requests of an environment, per node. Equals SQLite's number of readers.
pub const READS: usize = 4;
/// How long a read request waits for one of its environment's permits.
pub const READ_WAIT: Duration = Duration::from_secs(5);
/// Minimum interval of log lines of one kind, where many can come at once.
pub const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long the previous webhook secret also signs.
pub const SECRET_OVERLAP: Duration = Duration::from_secs(86_400);

/// `about` of a business profile.
pub const PROFILE_ABOUT: usize = 139;
/// `address` of a business profile.
pub const PROFILE_ADDRESS: usize = 256;
/// `description` of a business profile.
pub const PROFILE_DESCRIPTION: usize = 512;
/// `websites` of a business profile.
pub const PROFILE_WEBSITES: usize = 2;
/// Profile picture, in bytes.
pub const PICTURE_BYTES: usize = 5 * 1024 * 1024;

/// Name of a phone number.
pub const NUMBER_NAME: usize = 100;
/// Client name of an invitation.
pub const INVITATION_NAME: usize = 100;
/// Range of `expiresInDays` of an invitation.
pub const INVITATION_DAYS: (u32, u32) = (1, 30);
/// Default of `expiresInDays`.
pub const INVITATION_DAYS_DEFAULT: u32 = 7;
/// How long a phone verification code is valid.
pub const INVITATION_CODE_TTL: Duration = Duration::from_secs(600);
/// Wrong tries that invalidate a code.
pub const INVITATION_CODE_TRIES: u32 = 5;
/// Codes of one invitation within [`INVITATION_CODE_SPAN`].
pub const INVITATION_CODES: usize = 3;
/// See [`INVITATION_CODES`].
pub const INVITATION_CODE_SPAN: Duration = Duration::from_secs(3_600);
/// How long an address verification code is valid.
pub const MAIL_CODE_TTL: Duration = Duration::from_secs(900);
/// Wrong tries that invalidate such a code.
pub const MAIL_CODE_TRIES: i16 = 5;
/// Minimum time between two codes for one address.
pub const MAIL_CODE_PAUSE: Duration = Duration::from_secs(60);
/// Codes for one address within [`MAIL_CODE_SPAN`].
pub const MAIL_CODES: i16 = 5;
/// Addresses that one environment can send codes to within [`MAIL_CODE_SPAN`].
pub const MAIL_CODE_ADDRESSES: usize = 20;
/// See [`MAIL_CODES`].
pub const MAIL_CODE_SPAN: Duration = Duration::from_secs(86_400);
/// Maximum number of countries of an invitation or a sender.
pub const COUNTRIES: usize = 250;

pub const BROADCAST_NAME: usize = 200;
/// Recipients per call.
pub const BROADCAST_CONTACTS: usize = 1_000;
/// Maximum time from now to `scheduledAt` of a broadcast.
pub const BROADCAST_AHEAD: Duration = Duration::from_secs(365 * 86_400);
/// Counted links of a broadcast. They are stored in the transaction that begins to send it.
pub const COUNTED_LINKS: usize = 1_000;
/// Automated reviews per broadcast.
pub const REVIEW_ATTEMPTS: u32 = 3;

/// Name of a template. WhatsApp takes lower-case letters, digits and underscores only.
pub const TEMPLATE_NAME: usize = 512;
pub const TEMPLATE_BODY: usize = 1_024;
/// Label of a template's button.
pub const TEMPLATE_BUTTON: usize = 25;
/// URL of a template's button, or an example of its variable.
pub const TEMPLATE_URL: usize = 2_000;
/// Value of a template's variable.
pub const TEMPLATE_VALUE: usize = 1_024;
/// Values for each part of a template. No template has this many variables.
pub const TEMPLATE_VALUES: usize = 1_500;

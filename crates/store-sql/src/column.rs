//! What columns hold for the types of the domain.

use nuncio_domain::id::Id as _;
use nuncio_domain::{
    AddressId, AddressKind, AuditEntryId, BroadcastContactId, BroadcastId, Channel, ConnectionId, ContactId, DeliveryId, Environment,
    EventId, InvitationId, KeyId, MessageId, Micros, PhoneNumberId, ProjectId, ReceiptId, Redacted, SenderId, SuppressionId, TeamId,
    TemplateId, TenantId, Timestamp, UserId, audit, broadcast, contact, event, invitation, ledger, mailbox, message, number, price,
    template, user, webhook,
};
use uuid::Uuid;

/// A value that is bound to a statement.
pub(crate) trait ToColumn {
    type Column;

    fn to_column(self) -> Self::Column;
}

/// A type that is read from a column.
pub(crate) trait FromColumn: Sized {
    type Column;

    /// Fails with what is wrong, such as a number without a meaning.
    fn from_column(column: Self::Column) -> Result<Self, String>;
}

impl<T: ToColumn> ToColumn for Option<T> {
    type Column = Option<T::Column>;

    fn to_column(self) -> Self::Column {
        self.map(T::to_column)
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    type Column = Option<T::Column>;

    fn from_column(column: Self::Column) -> Result<Self, String> {
        column.map(T::from_column).transpose()
    }
}

/// Types that a column holds as another: how to make each of the other.
macro_rules! columns {
    ($($type:ty as $column:ty: $to:expr, $from:expr;)*) => {$(
        impl ToColumn for $type {
            type Column = $column;

            fn to_column(self) -> $column {
                let to: fn($type) -> $column = $to;
                to(self)
            }
        }

        impl FromColumn for $type {
            type Column = $column;

            fn from_column(column: $column) -> Result<Self, String> {
                let from: fn($column) -> Result<$type, String> = $from;
                from(column)
            }
        }
    )*};
}

macro_rules! ids {
    ($($type:ty),* $(,)?) => { columns! { $($type as Uuid: |id| id.uuid(), |column| Ok(<$type>::from_uuid(column));)* } };
}

macro_rules! numbers {
    ($($type:ty),* $(,)?) => {
        columns! { $($type as i16: |value| value.number(), |number| <$type>::from_number(number).ok_or_else(|| number.to_string());)* }
    };
}

macro_rules! same {
    ($($type:ty),* $(,)?) => { columns! { $($type as $type: |value| value, Ok;)* } };
}

same!(i16, i32, i64, String, Uuid, Vec<u8>);

ids!(
    AddressId, AuditEntryId, BroadcastContactId, BroadcastId, ConnectionId, ContactId, DeliveryId, EventId, InvitationId, KeyId, MessageId,
    PhoneNumberId, ProjectId, ReceiptId, SenderId, SuppressionId, TeamId, TemplateId, UserId,
);

numbers!(
    AddressKind,
    Channel,
    audit::ActorKind,
    broadcast::BroadcastChannel,
    broadcast::BroadcastType,
    broadcast::ContactStatus,
    broadcast::Status,
    contact::SuppressionReason,
    event::ResourceKind,
    invitation::InvitationStatus,
    ledger::Account,
    ledger::Purpose,
    mailbox::Proof,
    message::Status,
    number::NumberStatus,
    price::Unit,
    template::Status,
    user::Role,
    webhook::DeliveryStatus,
);

columns! {
    bool as i16: i16::from, |number| Ok(number != 0);
    u32 as i64: i64::from, |number| u32::try_from(number).map_err(|_| number.to_string());
    u64 as i64: |number| number as i64, |number| Ok(number as u64);
    TenantId as i64: |tenant| tenant.0, |number| Ok(Self(number));
    message::NodeId as i64: |node| node.0, |number| Ok(Self(number));
    Micros as i64: |sum| sum.0, |number| Ok(Self(number));
    Timestamp as i64: Self::millis, |millis| Ok(Self::from_millis(millis));
    Environment as String: |environment| environment.as_str().to_owned(), |text| Self::parse(&text).ok_or(text);
}

impl<T> FromColumn for Redacted<T> {
    type Column = T;

    fn from_column(column: T) -> Result<Self, String> {
        Ok(Self::new(column))
    }
}

impl FromColumn for [u8; 32] {
    type Column = Vec<u8>;

    fn from_column(column: Vec<u8>) -> Result<Self, String> {
        column.try_into().map_err(|_| "length".to_owned())
    }
}

/// Types that are bound as they are.
macro_rules! borrowed {
    ($($type:ty),* $(,)?) => {$(
        impl<'a> ToColumn for &'a $type {
            type Column = &'a $type;

            fn to_column(self) -> Self::Column {
                self
            }
        }
    )*};
}

borrowed!(i16, i32, i64, Uuid, str, String, [u8], Vec<u8>, Option<String>);

impl<'a, T> ToColumn for &'a Redacted<T> {
    type Column = &'a T;

    fn to_column(self) -> &'a T {
        self.expose()
    }
}

impl<'a, const N: usize> ToColumn for &'a [u8; N] {
    type Column = &'a [u8];

    fn to_column(self) -> &'a [u8] {
        self
    }
}

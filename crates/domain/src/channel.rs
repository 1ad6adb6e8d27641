//! Channels and message types.

use serde::{Deserialize, Serialize};

/// An enumeration of names, which are the same in JSON, and, if they are given, of numbers, which are stored.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal $text:tt,)* }) => {
        $crate::channel::named! { $(#[$meta])* $name { $($(#[$doc])* $variant $text,)* } }

        impl $name {
            /// Returns the stored number. Never reused for another value.
            pub const fn number(self) -> i16 { match self { $(Self::$variant => $number,)* } }
            /// Parses the stored number.
            pub const fn from_number(number: i16) -> Option<Self> { match number { $($number => Some(Self::$variant),)* _ => None } }
        }
    };
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $text:tt,)* }) => {
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Returns the JSON name.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text,)* } }
            /// Parses the name.
            pub fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$variant),)* _ => None } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
    };
}
pub(crate) use named;

named! {
    /// A way to reach a recipient.
    Channel {
        /// SMS with replies.
        Sms = 1 "sms",
        /// SMS from an alphanumeric sender; the recipient cannot reply.
        SmsOneway = 2 "sms_oneway",
        Whatsapp = 3 "whatsapp",
        Telegram = 4 "telegram",
        Email = 5 "email",
        Instagram = 6 "instagram",
        /// A phone call that speaks the text.
        Voice = 7 "voice",
    }
}

impl Channel {
    /// Returns whether this is a messaging app. Those fall back to SMS when they fail.
    pub const fn is_app(self) -> bool {
        matches!(self, Self::Whatsapp | Self::Telegram | Self::Instagram)
    }

    /// Returns whether providers report when a message was read.
    pub const fn has_read_receipts(self) -> bool {
        matches!(self, Self::Whatsapp | Self::Instagram)
    }

    /// Returns whether recipients can reply.
    pub const fn has_answers(self) -> bool {
        !matches!(self, Self::SmsOneway | Self::Voice)
    }

    pub const fn is_sms(self) -> bool {
        matches!(self, Self::Sms | Self::SmsOneway)
    }

    /// Returns the channel as stored for contacts; whether a recipient can reply depends on the sender.
    #[must_use]
    pub const fn of_contact(self) -> Self {
        match self {
            Self::SmsOneway => Self::Sms,
            channel => channel,
        }
    }

    /// Returns the kind of address this channel uses.
    pub const fn address_kind(self) -> AddressKind {
        match self {
            Self::Sms | Self::SmsOneway | Self::Whatsapp | Self::Voice => AddressKind::Phone,
            Self::Telegram => AddressKind::Telegram,
            Self::Email => AddressKind::Email,
            Self::Instagram => AddressKind::Instagram,
        }
    }
}

named! {
    /// Kind of an identifier. A phone number is one identity across sms, whatsapp and voice.
    AddressKind {
        /// E.164 phone number.
        Phone = 1 "phone",
        /// Email address with a lower-cased domain.
        Email = 2 "email",
        /// Telegram chat id.
        Telegram = 3 "telegram",
        /// Instagram-scoped user id.
        Instagram = 4 "instagram",
    }
}

/// The `channel` of a request: one channel, or `auto` to let nuncio choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedChannel {
    /// Chosen from the recipient, the content and the sender's connections.
    #[default]
    Auto,
    /// Exactly this channel.
    #[serde(untagged)]
    Only(Channel),
}

impl RequestedChannel {
    /// Returns the JSON name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Only(channel) => channel.as_str(),
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for RequestedChannel {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let names = std::iter::once(Self::Auto).chain(Channel::ALL.iter().copied().map(Self::Only)).map(Self::as_str);
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("A channel, or `auto`."))
            .enum_values(Some(names))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for RequestedChannel {}

named! {
    /// Content type of a message.
    #[derive(Default)]
    MessageType {
        /// Plain text.
        #[default]
        Text = 1 "text",
        /// A picture.
        Image = 2 "image",
        Video = 3 "video",
        /// A sound.
        Audio = 4 "audio",
        /// A file.
        Document = 5 "document",
        Sticker = 6 "sticker",
        /// A place.
        Location = 7 "location",
        /// Contact cards.
        Contact = 8 "contact",
        /// Text with reply buttons.
        Buttons = 9 "buttons",
        /// Text with a list to choose from.
        List = 10 "list",
        /// Text with a link button.
        CtaUrl = 11 "cta_url",
        /// An emoji on an earlier message.
        Reaction = 12 "reaction",
        /// A template with variables.
        Template = 13 "template",
    }
}

//! Types of the Bot API, as far as used: <https://core.telegram.org/bots/api>. All fields that can be missing are optional, and unknown
//! ones are ignored: the API grows several times a year.

use serde::Deserialize;

/// Every response: <https://core.telegram.org/bots/api#making-requests>.
#[derive(Deserialize, Debug)]
pub(crate) struct ApiResponse<T> {
    pub(crate) ok: bool,
    pub(crate) result: Option<T>,
    pub(crate) error_code: Option<u16>,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) parameters: Parameters,
}

/// `ResponseParameters`.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct Parameters {
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
    pub(crate) migrate_to_chat_id: Option<i64>,
}

/// `WebhookInfo`.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct WebhookInfo {
    pub(crate) url: String,
    pub(crate) pending_update_count: u64,
    /// Unix time in seconds.
    pub(crate) last_error_date: Option<i64>,
    pub(crate) last_error_message: Option<String>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct File {
    pub(crate) file_size: Option<u64>,
    pub(crate) file_path: Option<String>,
}

/// `Update`, of the kinds in [`UPDATES`].
#[derive(Deserialize, Debug)]
pub(crate) struct Update {
    pub(crate) update_id: i64,
    pub(crate) message: Option<Message>,
    pub(crate) callback_query: Option<CallbackQuery>,
    pub(crate) message_reaction: Option<Reaction>,
    pub(crate) my_chat_member: Option<Membership>,
}

/// `ChatMemberUpdated` about the bot itself: in a private chat `kicked` means that the bot was blocked.
#[derive(Deserialize, Debug)]
pub(crate) struct Membership {
    pub(crate) chat: Chat,
    /// Unix time in seconds.
    pub(crate) date: i64,
    pub(crate) new_chat_member: Member,
}

/// `ChatMember`.
#[derive(Deserialize, Debug)]
pub(crate) struct Member {
    pub(crate) status: String,
}

/// The kinds of updates that are asked for (`allowed_updates`). Edited messages are not among them.
pub(crate) const UPDATES: [&str; 4] = ["message", "callback_query", "message_reaction", "my_chat_member"];

/// `Message`, sent or received.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) message_id: i64,
    /// Unix time in seconds.
    pub(crate) date: i64,
    pub(crate) from: Option<User>,
    pub(crate) chat: Chat,
    pub(crate) reply_to_message: Option<Box<Message>>,
    pub(crate) text: Option<String>,
    pub(crate) caption: Option<String>,
    pub(crate) photo: Vec<Media>,
    pub(crate) animation: Option<Media>,
    pub(crate) video: Option<Media>,
    pub(crate) video_note: Option<Media>,
    pub(crate) audio: Option<Media>,
    pub(crate) voice: Option<Media>,
    pub(crate) document: Option<Media>,
    pub(crate) sticker: Option<Media>,
    pub(crate) location: Option<Location>,
    pub(crate) venue: Option<Venue>,
    pub(crate) contact: Option<Contact>,
    pub(crate) reply_markup: Option<Keyboard>,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct Chat {
    pub(crate) id: i64,
    pub(crate) title: Option<String>,
    pub(crate) first_name: Option<String>,
    pub(crate) last_name: Option<String>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) username: Option<String>,
    #[serde(default)]
    pub(crate) first_name: String,
    pub(crate) last_name: Option<String>,
}

/// What `PhotoSize`, `Video`, `Audio`, `Voice`, `Document`, `Sticker`, `Animation` and `VideoNote` have in common.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct Media {
    pub(crate) file_id: String,
    pub(crate) file_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) width: u32,
    pub(crate) is_animated: bool,
    pub(crate) is_video: bool,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Location {
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Venue {
    pub(crate) location: Location,
    pub(crate) title: String,
    pub(crate) address: String,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Contact {
    pub(crate) phone_number: String,
    pub(crate) first_name: String,
    pub(crate) last_name: Option<String>,
}

/// `InlineKeyboardMarkup`.
#[derive(Deserialize, Debug)]
pub(crate) struct Keyboard {
    #[serde(default)]
    pub(crate) inline_keyboard: Vec<Vec<Key>>,
}

/// `InlineKeyboardButton`.
#[derive(Deserialize, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) callback_data: Option<String>,
}

/// `CallbackQuery`: a button was pressed.
#[derive(Deserialize, Debug)]
pub(crate) struct CallbackQuery {
    pub(crate) id: String,
    pub(crate) from: User,
    /// Ours, with the button; without its content when it is very old.
    pub(crate) message: Option<Message>,
    pub(crate) data: Option<String>,
}

/// `MessageReactionUpdated`.
#[derive(Deserialize, Debug)]
pub(crate) struct Reaction {
    pub(crate) chat: Chat,
    pub(crate) message_id: i64,
    pub(crate) date: i64,
    #[serde(default)]
    pub(crate) old_reaction: Vec<ReactionType>,
    #[serde(default)]
    pub(crate) new_reaction: Vec<ReactionType>,
}

/// `ReactionType`; only that of an emoji has one.
#[derive(Deserialize, Debug)]
pub(crate) struct ReactionType {
    pub(crate) emoji: Option<String>,
}

//! Broadcasts: composing, reviewing, sending.

mod act;
mod audience;
mod change;
mod check;
mod command;
mod compose;
mod composer;
mod contacts;
mod content;
mod fan_out;
mod import;
mod import_preview;
mod import_rows;
mod links;
mod manage;
mod money;
mod quiet;
mod results;
mod reviewing;
mod run;
mod safety;
mod statistics;
mod variables;
mod view;
mod wait;

pub use crate::review::Reviewer;
pub use audience::{SelectContacts, SelectedContacts};
pub use command::{
    AddBroadcastContacts, CreateBroadcast, ListBroadcastContacts, ListBroadcasts, NewContact, ScheduleBroadcast, SendBroadcast,
    UpdateBroadcast,
};
pub use compose::{BroadcastEstimate, BroadcastPreview, CloneBroadcast, PreviewBroadcast, TestBroadcast};
pub use contacts::AddedContacts;
pub use import::{Import, ImportContacts, ImportedContacts};
pub use import_preview::{ColumnUse, HEAD as PREVIEWED, ImportPreview, PreviewedColumn};
pub use import_rows::Format as ImportFormat;
pub use results::{CSV_HEAD, Results, csv_line};
pub use reviewing::{EscalatedBroadcast, ReviewExample};
pub use run::Slots;
pub use statistics::{
    BroadcastStatistics, ChannelStatistics, CountryStatistics, FailureStatistics, LinkStatistics, PaceStatistics, RecipientCounts,
    WithoutReason,
};
pub use view::{BroadcastContactView, BroadcastProgress, BroadcastView};
pub use wait::BroadcastWait;

crate::base::use_cases! {
    /// Broadcasts: compose, review, send, and what is due.
    broadcasts => Broadcasts
}

//! Broadcasts: making, reviewing, sending.

mod act;
mod change;
mod check;
mod command;
mod contacts;
mod hand_over;
mod manage;
mod money;
#[cfg_attr(not(test), expect(dead_code, reason = "broadcasts have no quiet hours yet"))]
mod quiet;
mod reviewer;
mod reviewing;
mod run;
mod view;

pub use command::{
    AddBroadcastContacts, CreateBroadcast, ListBroadcastContacts, ListBroadcasts, NewContact, ScheduleBroadcast, SendBroadcast,
    UpdateBroadcast,
};
pub use contacts::AddedContacts;
pub use reviewer::Reviewer;
pub use reviewing::ReviewExample;
pub use view::{BroadcastContactView, BroadcastProgress, BroadcastView};

crate::base::use_cases! {
    /// Broadcasts: compose, review, send, and what is due.
    broadcasts => Broadcasts
}

//! Invitations: clients set up senders themselves, through a link.

mod code;
mod create;
mod invitee;
mod list;
mod status;
mod view;

pub use create::CreateInvitation;
pub use invitee::{Details, Invitee};
pub use list::ListInvitations;
pub use view::InvitationView;

crate::base::use_cases! {
    /// Invitations, for callers and for invited clients.
    invitations => Invitations
}

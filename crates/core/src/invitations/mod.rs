//! Invitations: a client sets up a sender by itself, behind a link.

mod code;
mod create;
mod expire;
mod guest;
mod list;
mod status;
mod view;

pub use create::CreateInvitation;
pub use guest::{Details, Guest};
pub use list::ListInvitations;
pub use view::InvitationView;

crate::base::use_cases! {
    /// Invitations, for who makes them and for their guests.
    invitations => Invitations
}

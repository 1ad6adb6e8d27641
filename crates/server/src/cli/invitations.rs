//! `nuncio invitations`.

use clap::Subcommand;
use nuncio_domain::invitation::InvitationStatus;
use reqwest::Method;
use serde_json::json;

use super::values::{count, joined, names};
use crate::client::lists::{self, Act, INVITATIONS};
use crate::client::profile::Remote;

#[derive(Debug, Subcommand)]
pub(super) enum InvitationsAction {
    /// List invitations, newest first.
    List {
        /// Only those with this status.
        #[arg(long, value_delimiter = ',', value_parser = names(InvitationStatus::ALL, InvitationStatus::as_str))]
        status: Vec<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show an invitation.
    Show {
        /// The invitation.
        id: String,
    },
    /// Create a link for a client.
    Create {
        /// The client's name.
        #[arg(long)]
        client: Option<String>,
        /// The client's email address.
        #[arg(long)]
        email: Option<String>,
        /// The client's phone number.
        #[arg(long)]
        phone: Option<String>,
        /// The ID of a phone number of yours that the client uses instead of their own.
        #[arg(long, value_name = "ID")]
        number: Option<String>,
        /// Countries that the client's number may be from, such as ES,MX [default: any].
        #[arg(long, value_delimiter = ',')]
        countries: Vec<String>,
        /// Days until the link expires [default: 7].
        #[arg(long)]
        days: Option<u32>,
    },
    /// Cancel an invitation. Its link stops working.
    Cancel {
        /// The invitation.
        id: String,
    },
}

impl InvitationsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { status, limit } => {
                lists::list(&worlds, &INVITATIONS, &[("status", joined(&status).as_deref())], limit, json).await
            }
            Self::Show { id } => lists::show(&worlds, &INVITATIONS, &id, json).await,
            Self::Create { client, email, phone, number, countries, days } => {
                let body = json!({"clientName": client, "clientEmail": email, "clientPhone": phone, "phoneNumberId": number,
                    "allowedPhoneCountries": countries, "expiresInDays": days});
                lists::print(&at.world()?.call(Method::POST, "/v1/invitations", Some(&body)).await?, json);
                Ok(())
            }
            Self::Cancel { id } => lists::act(&worlds, &INVITATIONS, &id, Act::post("/cancel", None), json).await,
        }
    }
}

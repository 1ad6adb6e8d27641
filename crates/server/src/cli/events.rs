//! `nuncio events`.

use clap::Subcommand;

use super::values::count;
use crate::client::listen::{self, Which};
use crate::client::lists::{self, EVENTS};
use crate::client::profile::Remote;

#[derive(Debug, Subcommand)]
pub(super) enum EventsAction {
    /// List events, newest first.
    List {
        #[command(flatten)]
        which: Which,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show events as they happen.
    Follow(Which),
}

impl EventsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<()> {
        match self {
            Self::List { which, limit } => {
                let types: Vec<&str> = which.types.iter().flat_map(|types| types.split(',')).collect();
                let mut query: Vec<(&str, Option<&str>)> = types.into_iter().map(|each| ("type", Some(each))).collect();
                query.push(("resourceId", which.resource.as_deref()));
                lists::list(&at.worlds()?, &EVENTS, &query, limit, at.json()).await
            }
            Self::Follow(which) => listen::follow(&at.worlds()?, &which, at.json()).await,
        }
    }
}

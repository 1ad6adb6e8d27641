//! `nuncio balance` and `nuncio storage`: what an environment may spend and store.

use clap::Subcommand;
use nuncio_domain::Environment;

use super::input::Switch;
use crate::admin::Command;
use crate::client::profile::environment;

#[derive(Debug, Subcommand)]
pub(super) enum BalanceAction {
    /// Show what is available, reserved and spent.
    Show {
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
    },
    /// Add funds; a negative amount withdraws.
    Add {
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
        /// US dollars.
        #[arg(allow_negative_numbers = true)]
        amount: String,
        /// A name for this deposit, such as a receipt number. The same reference counts once.
        #[arg(long)]
        reference: Option<String>,
    },
    /// Limit spending to what is available [default: off].
    Limit {
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
        /// on or off.
        switch: Switch,
    },
}

impl From<BalanceAction> for Command {
    fn from(action: BalanceAction) -> Self {
        match action {
            BalanceAction::Show { env } => Self::BalanceShow { env },
            BalanceAction::Add { env, amount, reference } => Self::BalanceAdd { env, amount, reference },
            BalanceAction::Limit { env, switch } => Self::BalanceLimit { env, on: switch == Switch::On },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum StorageAction {
    /// Show the quota and what is stored.
    Show {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
    /// Set the quota [default: off]. New messages beyond it are rejected with 507.
    Limit {
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
        /// Bytes, such as 500M or 20G, or off. Counts the stored requests of messages, attachments in base64 included.
        #[arg(value_parser = quota)]
        bytes: Quota,
    },
}

impl From<StorageAction> for Command {
    fn from(action: StorageAction) -> Self {
        match action {
            StorageAction::Show { env } => Self::StorageShow { env },
            StorageAction::Limit { env, bytes: Quota(max_bytes) } => Self::StorageLimit { env, max_bytes },
        }
    }
}

/// A number of bytes, or none for no quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Quota(Option<i64>);

fn quota(text: &str) -> Result<Quota, String> {
    if text == "off" {
        return Ok(Quota(None));
    }
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        _ => return Err(format!("{text:?} is not a number of bytes such as 500M or 20G, or off")),
    };
    let bytes = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(1 << shift)).filter(|bytes| *bytes > 0);
    bytes.map(|bytes| Quota(Some(bytes))).ok_or_else(|| format!("{text:?} is out of range; must be 1 byte to 8388607T, or off"))
}

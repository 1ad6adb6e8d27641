//! `nuncio numbers`: the inventory of phone numbers.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::Environment;

use super::input::{country, typed};
use crate::admin::{Command, explain};
use crate::client::profile::environment;

#[derive(Debug, Subcommand)]
pub(super) enum NumbersAction {
    /// List the inventory, and who holds each number.
    List {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
    /// Import numbers from a CSV file with the columns phoneNumber, capabilities, monthlyPrice, monthlyCost, upfrontCost, isFreeNumber.
    /// Known numbers get the new capabilities and prices.
    Import {
        /// A CSV file with a header line.
        file: PathBuf,
        /// The country of numbers written without its code, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
    },
    /// Add one number. A known number gets the new capabilities and prices.
    #[command(after_help = "Example: nuncio numbers add +12025550142 --capabilities sms,voice --monthly-price 1.15")]
    Add {
        /// With the country code, such as "+34 600 111 222", or as dialled in --country.
        phone_number: String,
        /// The country of the phone number, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        /// The environment.
        #[arg(long, default_value = "live", value_parser = environment())]
        env: Environment,
        /// What it can do: sms, voice, mms; separated by commas.
        #[arg(long)]
        capabilities: String,
        /// What its holder pays per month, in US dollars.
        #[arg(long, value_name = "USD", default_value = "0")]
        monthly_price: String,
        /// What you pay per month, in US dollars.
        #[arg(long, value_name = "USD", default_value = "0")]
        monthly_cost: String,
        /// What its holder pays once, in US dollars.
        #[arg(long, value_name = "USD", default_value = "0")]
        upfront_cost: String,
        /// Charge its holder nothing.
        #[arg(long)]
        free: bool,
    },
}

impl NumbersAction {
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::List { env } => Command::NumbersList { env },
            Self::Import { file, country, env } => {
                let shown = || file.display().to_string();
                let read = ImportedNumber::read_file(&std::fs::read(&file).with_context(shown)?);
                let mut numbers = read.map_err(|error| anyhow!(explain(&error))).with_context(shown)?;
                for (_, number) in &mut numbers {
                    number.phone_number = typed(std::mem::take(&mut number.phone_number), country.as_ref());
                }
                Command::NumbersImport { env, numbers }
            }
            Self::Add { phone_number, country, env, capabilities, monthly_price, monthly_cost, upfront_cost, free } => {
                let is_free_number = free.to_string();
                let phone_number = typed(phone_number, country.as_ref());
                let number = ImportedNumber { phone_number, capabilities, monthly_price, monthly_cost, upfront_cost, is_free_number };
                Command::NumbersAdd { env, number }
            }
        })
    }
}

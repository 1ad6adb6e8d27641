//! `nuncio prices`.

use clap::Subcommand;

use crate::admin::Command;
use crate::client::send::read_input;

#[derive(Debug, Subcommand)]
pub(super) enum PricesAction {
    /// Import a CSV file with the columns channel,country,unit,provider,fee,effective_from, in US dollars per segment, message or minute.
    /// A line replaces the price of the same channel, country and date.
    Import {
        /// The file, separated by commas, semicolons or tabs; - for standard input.
        file: String,
        /// For this project only; such prices take precedence over the general ones.
        #[arg(long)]
        own: bool,
        /// Delete prices not in the file.
        #[arg(long)]
        replace: bool,
    },
    /// List the prices of the project, and those of all projects.
    List {
        /// Only those of the project.
        #[arg(long)]
        own: bool,
    },
}

impl PricesAction {
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::Import { file, own, replace } => Command::PricesImport { csv: read_input(&file)?, own, replace },
            Self::List { own } => Command::PricesList { own },
        })
    }
}

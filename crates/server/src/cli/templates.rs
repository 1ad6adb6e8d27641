//! `nuncio templates`.

use clap::Subcommand;
use nuncio_domain::template::Category;
use reqwest::Method;
use serde_json::json;

use super::input::read_object;
use super::values::{count, names};
use crate::client::lists::{self, Act, TEMPLATES};
use crate::client::profile::Remote;

#[derive(Debug, Subcommand)]
pub(super) enum TemplatesAction {
    /// List templates, newest first.
    List {
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show a template.
    Show {
        /// The template.
        id: String,
    },
    /// Create a template.
    #[command(after_help = "Example of a file: {\"name\": \"hello\", \"language\": \"en\", \"body\": \"Hello {{1}}\"}")]
    Create {
        /// A file with the JSON body of the request; - for standard input.
        file: String,
    },
    /// Change a template that is not in review. Omitted fields stay unchanged.
    Update {
        /// The template.
        id: String,
        /// A file with the JSON body of the request; - for standard input.
        file: String,
    },
    /// Submit a template to the provider for approval.
    Submit {
        /// The template.
        id: String,
        /// ID or name of the sender whose WhatsApp account it is submitted with [default: the default sender].
        #[arg(long)]
        sender: Option<String>,
        /// Its category, if it changes.
        #[arg(long, value_parser = names(Category::ALL, Category::as_str))]
        category: Option<String>,
    },
    /// Delete a template.
    Delete {
        /// The template.
        id: String,
    },
}

impl TemplatesAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { limit } => lists::list(&worlds, &TEMPLATES, &[], limit, json).await,
            Self::Show { id } => lists::show(&worlds, &TEMPLATES, &id, json).await,
            Self::Create { file } => {
                let body = read_object(&file)?.into();
                lists::print(&at.world()?.call(Method::POST, "/v1/templates", Some(&body)).await?, json);
                Ok(())
            }
            Self::Update { id, file } => {
                let body = read_object(&file)?.into();
                let act = Act { method: Method::PATCH, path: "", body: Some(&body) };
                lists::act(&worlds, &TEMPLATES, &id, act, json).await
            }
            Self::Submit { id, sender, category } => {
                let (world, _) = lists::find(&worlds, &TEMPLATES, &id).await?;
                let sender = lists::sender(world, sender.as_deref()).await?;
                let mut body = json!({"senderId": sender["id"]});
                if let Some(category) = category {
                    body["category"] = category.into();
                }
                lists::print(&world.call(Method::POST, &format!("/v1/templates/{id}/submit"), Some(&body)).await?, json);
                Ok(())
            }
            Self::Delete { id } => lists::act(&worlds, &TEMPLATES, &id, Act::delete(), json).await,
        }
    }
}

//! `nuncio senders`, on an installation or on a remote node.

use anyhow::bail;
use clap::{Args, Subcommand};
use nuncio_domain::Environment;
use reqwest::Method;
use serde_json::{Number, Value, json};

use super::input::{country, or_live, typed};
use crate::admin::Command;
use crate::client::lists::{self, Act, SENDERS};
use crate::client::profile::{Access, Remote, environment};
use crate::client::{CallError, World};

/// What can be set of a sender, apart from its name.
#[derive(Debug, Args)]
pub(super) struct Fields {
    /// Its phone number: with the country code, such as "+34 600 111 222", or as dialled in --country.
    #[arg(long, value_name = "NUMBER")]
    phone_number: Option<String>,
    /// The country of the phone number, such as ES.
    #[arg(long, value_parser = country)]
    country: Option<String>,
    /// Use it for messages without a sender.
    #[arg(long)]
    default: bool,
    /// Accept inbound email.
    #[arg(long, value_name = "BOOL")]
    receive_email: Option<bool>,
    /// Countries it can send to, separated by commas, such as ES,PT; all for no limit.
    #[arg(long, value_name = "COUNTRIES", value_delimiter = ',')]
    allowed_countries: Option<Vec<String>>,
    /// US dollars it can spend per day, such as 25; none for no limit.
    #[arg(long, value_name = "AMOUNT", value_parser = spend_limit)]
    daily_spend_limit: Option<Value>,
}

fn spend_limit(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::Null);
    }
    let amount = text.parse().ok().and_then(Number::from_f64);
    amount.map(Value::Number).ok_or_else(|| "must be an amount of US dollars, such as 25, or none".to_owned())
}

impl Fields {
    /// The body of a request that creates or changes a sender.
    fn into_body(self, name: Option<String>) -> Value {
        let Self { phone_number, country, default, receive_email, allowed_countries, daily_spend_limit } = self;
        let countries = allowed_countries.map(|countries| if countries == ["all"] { Value::Null } else { countries.into() });
        let given = [
            ("name", name.map(Value::from)),
            ("phoneNumber", phone_number.map(|phone| typed(phone, country.as_ref()).into())),
            ("setAsDefault", default.then_some(true.into())),
            ("emailReceivingEnabled", receive_email.map(Value::from)),
            ("allowedCountries", countries),
            ("dailySpendLimit", daily_spend_limit),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum SendersAction {
    /// List senders.
    List {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
    /// Create a sender.
    Create {
        /// The environment [default: live; on a remote node, the one that there is a key for].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
        /// Its name.
        #[arg(long)]
        name: String,
        #[command(flatten)]
        fields: Fields,
    },
    /// Change a sender. Omitted fields stay unchanged.
    Update {
        /// The sender's ID.
        id: String,
        /// The environment [default: live; on a remote node, the one that has the sender].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
        /// Its new name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Fields,
    },
    /// Copy a sender to the project's other environment. Provider accounts are not copied.
    Copy {
        /// The ID of the sender to copy.
        id: String,
        /// The environment to create the copy in.
        #[arg(long, value_parser = environment())]
        to: Environment,
    },
    /// Delete a sender that is not the default and has nothing left to send. Its messages stay readable.
    Delete {
        /// The sender's ID.
        id: String,
        /// The environment [default: live; on a remote node, the one that has the sender].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
}

impl From<SendersAction> for Command {
    fn from(action: SendersAction) -> Self {
        match action {
            SendersAction::List { env } => Self::SendersList { env },
            SendersAction::Create { env, name, fields } => Self::SendersCreate { env: or_live(env), sender: fields.into_body(Some(name)) },
            SendersAction::Update { id, env, name, fields } => {
                Self::SendersUpdate { env: or_live(env), id, change: fields.into_body(name) }
            }
            SendersAction::Copy { id, to } => Self::SendersCopy { id, to },
            SendersAction::Delete { id, env } => Self::SendersDelete { env: or_live(env), id },
        }
    }
}

impl SendersAction {
    /// Runs the command on a remote node.
    pub(super) async fn run(self, access: Access, json: bool) -> anyhow::Result<()> {
        let at = |env| Remote::new(access, env, json);
        match self {
            Self::List { env } => lists::list(&at(env).worlds()?, &SENDERS, &[], usize::MAX, json).await,
            Self::Create { env, name, fields } => {
                let body = fields.into_body(Some(name));
                lists::print(&at(env).world()?.call(Method::POST, "/v1/senders", Some(&body)).await?, json);
                Ok(())
            }
            Self::Update { id, env, name, fields } => {
                let body = fields.into_body(name);
                let act = Act { method: Method::PATCH, path: "", body: Some(&body) };
                lists::act(&at(env).worlds()?, &SENDERS, &id, act, json).await
            }
            Self::Copy { id, to } => {
                lists::print(&copy(&at(None).worlds()?, &id, to).await?, json);
                Ok(())
            }
            Self::Delete { id, env } => lists::act(&at(env).worlds()?, &SENDERS, &id, Act::delete(), json).await,
        }
    }
}

/// Creates a sender in the environment `to` like one of the other: name, number, limits, webhook and profile.
async fn copy(worlds: &[World], id: &str, to: Environment) -> anyhow::Result<Value> {
    let Some(target) = worlds.iter().find(|world| world.environment == to) else {
        bail!("there is no key to the {} environment; `nuncio login` adds one", to.as_str());
    };
    let from: Vec<World> = worlds.iter().filter(|world| world.environment != to).cloned().collect();
    let (source, sender) = lists::find(&from, &SENDERS, id).await?;
    let webhook = &sender["webhook"];
    let given = json!({"name": sender["name"], "phoneNumber": sender["phoneNumber"],
        "emailReceivingEnabled": sender["emailReceivingEnabled"],
        "allowedCountries": sender["allowedCountries"], "dailySpendLimit": sender["dailySpendLimit"], "webhookUrl": webhook["url"],
        "webhookEvents": webhook["events"]});
    let made = target.call(Method::POST, "/v1/senders", Some(&present(&given))).await?;
    let path = format!("/v1/senders/{}", made["id"].as_str().unwrap_or_default());
    if webhook["active"] == false {
        target.call(Method::PATCH, &path, Some(&json!({"webhookActive": false}))).await?;
    }
    let profile = match source.get(&format!("/v1/senders/{id}/profile"), &[]).await {
        Ok(profile) => lists::unwrapped(profile),
        Err(CallError::Refused { .. }) => Value::Null, // a sender without WhatsApp has none
        Err(error) => return Err(error.into()),
    };
    let fields = ["about", "address", "description", "email", "vertical", "websites"].map(|name| (name.to_owned(), profile[name].clone()));
    let profile = present(&Value::Object(fields.into_iter().collect()));
    if profile.as_object().is_some_and(|profile| !profile.is_empty()) {
        target.call(Method::PATCH, &format!("{path}/profile"), Some(&profile)).await?;
    }
    Ok(made)
}

/// The members that hold something.
fn present(object: &Value) -> Value {
    let members = object.as_object().into_iter().flatten().filter(|(_, value)| !lists::is_empty(value));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

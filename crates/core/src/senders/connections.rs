//! Provider connections: the accounts that carry a sender's channels.

use std::time::Duration;

use nuncio_channel::Account;
use nuncio_domain::config::{Connection, Throttle};
use nuncio_domain::{Channel, Environment, Error, FieldError, Redacted, Result, SenderId, TenantId, Timestamp, limits};
use nuncio_secrets::Row;
use nuncio_store::Tx;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{ConnectionView, Senders};
use crate::base::{Caller, Change, SIM, UseCase, check_version, parse_id, patch::or_default};

/// A provider account to set up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutConnection {
    /// The kind of provider, such as `smtp`.
    pub kind: String,
    /// Public settings, by name.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<Object>)]
    pub settings: Map<String, Value>,
    /// Secret settings. Absent ones keep their value if kind and settings stay the same.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<Object>)]
    pub secrets: Redacted<Map<String, Value>>,
    /// Rate limit; as fast as the provider accepts when absent.
    pub throttle: Option<Throttle>,
    /// Fails with 409 if the connection was last changed at another time, for pages, which save all fields of a form; `Some(None)`: if there
    /// is one.
    #[serde(skip)]
    pub expected_version: Option<Option<Timestamp>>,
}

impl Senders<'_> {
    /// `GET /v1/senders/{id}/channels/{channel}`.
    pub async fn get_channel(&self, caller: &Caller, sender: &str, channel: &str) -> Result<ConnectionView> {
        caller.require(UseCase::GetSenderChannel)?;
        let (sender, channel) = place(sender, channel)?;
        let mut tx = self.inner.store.read().await?;
        let found = connection_of(&mut *tx, caller.tenant, sender, channel).await?.ok_or_else(|| Error::not_found("connection"))?;
        self.connection_view(&mut *tx, caller.tenant, &found).await
    }

    /// `PUT /v1/senders/{id}/channels/{channel}`: returns the connection, and whether it is new.
    pub async fn put_channel(&self, caller: &Caller, sender: &str, channel: &str, put: PutConnection) -> Result<(ConnectionView, bool)> {
        caller.require(UseCase::PutSenderChannel)?;
        let (sender, channel) = place(sender, channel)?;
        let (connection, is_new) = self.put_connection(caller.tenant, sender, channel, put, false).await?;
        let mut tx = self.inner.store.read().await?;
        Ok((self.connection_view(&mut *tx, caller.tenant, &connection).await?, is_new))
    }

    /// `DELETE /v1/senders/{id}/channels/{channel}`.
    pub async fn delete_channel(&self, caller: &Caller, sender: &str, channel: &str) -> Result<()> {
        caller.require(UseCase::DeleteSenderChannel)?;
        let (sender, channel) = place(sender, channel)?;
        self.delete_connection(caller.tenant, sender, channel).await
    }

    /// Sets the provider account of a sender's channel, replacing the current one, and returns whether it is new. Returns all errors at
    /// once. Only a `trusted` account, set up by the operator, can reach the operator's own network.
    pub async fn put_connection(
        &self,
        tenant: TenantId,
        sender: SenderId,
        channel: Channel,
        put: PutConnection,
        trusted: bool,
    ) -> Result<(Connection, bool)> {
        let config = self.tenant_config(tenant).await?;
        let (environment, project) = (config.environment, config.project.id);
        let mut tx = self.change_config(tenant).await?;
        tx.find_senders(tenant, &[sender]).await?.pop().ok_or_else(|| Error::not_found("sender"))?;
        self.check_kind(environment, channel, &put.kind)?;
        let before = connection_of(&mut *tx, tenant, sender, channel).await?;
        check_version(put.expected_version, before.as_ref().map(|before| before.updated_at), "connection")?;
        let given: Vec<String> = put.secrets.expose().keys().cloned().collect();
        let (connection, mailbox) = self.connection((tenant, sender, channel), before.as_ref(), put, trusted)?;
        tx.put_connection(tenant, &connection).await?;
        self.claim_new(&mut *tx, (tenant, project), &connection, mailbox.as_deref()).await?;
        if channel == Channel::Whatsapp {
            forget_account(&mut *tx, tenant, sender).await?;
        }
        let change = Change::new("connection", if before.is_none() { "create" } else { "update" }, connection.id);
        let mut after = shown(&connection);
        if !given.is_empty() {
            after["secretsGiven"] = given.into();
        }
        change.from(&before.as_ref().map(shown)).to(&after).record(&mut *tx, tenant).await?;
        self.commit_change(tenant, tx).await?;
        if channel == Channel::Whatsapp {
            self.query_new_account(tenant, sender).await;
        }
        Ok((connection, before.is_none()))
    }

    /// Deletes the provider account of a sender's channel. Waiting messages take their fallback or fail when due.
    pub async fn delete_connection(&self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<()> {
        let mut tx = self.change_config(tenant).await?;
        let gone = connection_of(&mut *tx, tenant, sender, channel).await?.ok_or_else(|| Error::not_found("connection"))?;
        tx.delete_connection(tenant, sender, channel).await?;
        if channel == Channel::Whatsapp {
            forget_account(&mut *tx, tenant, sender).await?;
        }
        Change::new("connection", "delete", gone.id).from(&shown(&gone)).record(&mut *tx, tenant).await?;
        self.commit_change(tenant, tx).await?;
        self.inner.dispatch.close_lane(gone.id);
        Ok(())
    }

    /// `POST /v1/senders/{id}/channels/{channel}/test`. As [`Self::check_connection`], and the result shows in the health of
    /// the connection.
    pub async fn check_channel(&self, caller: &Caller, sender: &str, channel: &str) -> Result<Result<String, String>> {
        caller.require(UseCase::TestSenderChannel)?;
        let (sender, channel) = place(sender, channel)?;
        let found = {
            let mut tx = self.inner.store.read().await?;
            connection_of(&mut *tx, caller.tenant, sender, channel).await?.ok_or_else(|| Error::not_found("connection"))?
        };
        let result = self.check_connection(caller.tenant, &found).await?;
        self.inner.dispatch.checked(caller.tenant, &found, &result);
        Ok(result)
    }

    /// Connects to the provider and logs in, without sending anything. Returns what the provider reported, or what is wrong.
    pub async fn check_connection(&self, tenant: TenantId, connection: &Connection) -> Result<Result<String, String>> {
        let live = self.inner.dispatch.adapter(tenant, connection).ok().filter(|adapter| adapter.checks_own_sessions());
        match live.map_or_else(|| self.inner.dispatch.open_adapter(tenant, connection), Ok) {
            Ok(adapter) => {
                let found = adapter.check().await;
                let missing = self.missing_mail(tenant, connection, adapter.mailbox()).await?;
                Ok(found.map(|found| found + &missing))
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Returns the problem of the session that this node keeps for a connection. What sends can work without it.
    pub fn session_trouble(&self, connection: &Connection) -> Option<String> {
        self.inner.dispatch.session_trouble(connection.id)
    }

    /// Rejects real providers in the test environment, and the simulator in the live one: its "deliveries" would be counted and charged.
    fn check_kind(&self, environment: Environment, channel: Channel, kind: &str) -> Result<()> {
        let real = || {
            let kinds = self.inner.registry.kinds(channel).into_iter();
            kinds.filter(|kind| *kind != SIM).collect::<Vec<_>>().join(", ")
        };
        let message = match environment {
            Environment::Test if kind != SIM => {
                format!("is {kind:?}; in the test environment every channel is simulated, so it must be {SIM}")
            }
            Environment::Live if kind == SIM => {
                format!("is {SIM}, the simulator, which delivers nothing; in the live environment it must be one of {}", real())
            }
            Environment::Live if self.inner.registry.get(kind).is_none() => format!("is {kind:?}; must be one of {}", real()),
            Environment::Test | Environment::Live => return Ok(()),
        };
        Err(Error::field("kind", message))
    }

    /// Builds the connection that `put` describes, replacing `before`, and returns its inbound address. Validates settings and secrets
    /// against the adapter's description without calling the provider.
    fn connection(
        &self,
        (tenant, sender, channel): (TenantId, SenderId, Channel),
        before: Option<&Connection>,
        put: PutConnection,
        trusted: bool,
    ) -> Result<(Connection, Option<String>)> {
        // Settings decide where the account connects to: secrets that another party set must not be sent elsewhere by a caller's settings.
        let is_kept = |before: &&Connection| before.kind == put.kind && (trusted || before.settings == put.settings);
        let mut secrets = match before.filter(is_kept) {
            Some(connection) => self.open_secrets(tenant, connection),
            None => Map::new(),
        };
        for (name, value) in put.secrets.expose() {
            secrets.insert(name.clone(), value.clone());
        }
        secrets.retain(|_, value| value.as_str() != Some("")); // how a stored one is removed
        let id = before.map_or_else(|| self.ids().next(), |connection| connection.id);
        let sealed = self.inner.sealer.seal(Row::Connection(tenant, id), &secrets, &*self.ids().entropy).map_err(Error::internal)?;
        let connection = Connection {
            id,
            sender,
            channel,
            kind: put.kind,
            settings: put.settings,
            sealed: Redacted::new(sealed),
            trusted,
            throttle: put.throttle,
            updated_at: later(self.ids().clock.now(), before.map(|before| before.updated_at)),
        };
        let mut errors = Vec::new();
        check_throttle(connection.throttle, &mut errors);
        let account = Account::new(&connection, tenant, secrets);
        let opened = self.inner.registry.open(&connection.kind, &account, &self.inner.services);
        let mailbox = opened.map_or_else(
            |faults| {
                errors.extend(faults);
                None
            },
            |adapter| adapter.mailbox(),
        );
        if errors.is_empty() { Ok((connection, mailbox)) } else { Err(Error::invalid(errors)) }
    }

    /// Returns the secrets of a connection; none if they cannot be decrypted, so that all of them can be set again.
    fn open_secrets(&self, tenant: TenantId, connection: &Connection) -> Map<String, Value> {
        let opened = self.inner.sealer.open(Row::Connection(tenant, connection.id), connection.sealed.expose());
        opened.unwrap_or_else(|error| {
            tracing::error!(connection.id = %connection.id, %error, "failed to decrypt the secrets of a connection");
            Map::new()
        })
    }
}

/// Returns `now`, or one millisecond after the change `before`, if that is later. Lanes reopen when this time changes, and forms know by it
/// what they show, so two changes must not have the same time.
pub(super) fn later(now: Timestamp, before: Option<Timestamp>) -> Timestamp {
    before.map_or(now, |before| now.max(before.plus(Duration::from_millis(1))))
}

/// Parses the sender and the channel of a path.
pub(crate) fn place(sender: &str, channel: &str) -> Result<(SenderId, Channel)> {
    Ok((parse_id(sender, "sender")?, Channel::parse(channel).ok_or_else(|| Error::not_found("channel"))?))
}

async fn connection_of(tx: &mut dyn Tx, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<Option<Connection>> {
    let connections = tx.connections_of_senders(tenant, &[sender]).await?;
    Ok(connections.into_iter().find(|connection| connection.channel == channel))
}

/// Deletes the stored account of a connection that changed or was deleted. A profile not sent to a provider yet is kept for the next one.
async fn forget_account(tx: &mut dyn Tx, tenant: TenantId, sender: SenderId) -> Result<()> {
    let kept = tx.accounts_of_senders(tenant, &[sender]).await?.pop();
    if kept.is_some_and(|kept| !kept.unsent) {
        tx.delete_account(tenant, sender).await?;
    }
    Ok(())
}

/// Returns the members that the audit log compares.
fn shown(connection: &Connection) -> Value {
    let Connection { sender, channel, kind, settings, throttle, .. } = connection;
    json!({"senderId": sender, "channel": channel, "kind": kind, "settings": settings, "throttle": throttle})
}

fn check_throttle(throttle: Option<Throttle>, errors: &mut Vec<FieldError>) {
    let Some(Throttle { messages_per_second, burst }) = throttle else { return };
    let (least, most) = limits::THROTTLE_RATE;
    if !(least..=most).contains(&messages_per_second) {
        let message = format!("is {messages_per_second}; must be a number from {least} to {most}");
        errors.push(FieldError::new("throttle.messagesPerSecond", message));
    }
    if !(1..=limits::THROTTLE_BURST).contains(&burst) {
        errors.push(FieldError::new("throttle.burst", format!("is {burst}; must be a whole number from 1 to {}", limits::THROTTLE_BURST)));
    }
}

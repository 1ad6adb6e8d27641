//! Creates, reads, updates and deletes broadcasts.

use nuncio_domain::broadcast::{Body, Broadcast, BroadcastAction, Counts, QuietHours, Status, WrittenQuietHours};
use nuncio_domain::{BroadcastId, Error, ErrorCode, Result, id::Id as _, set_if_given, template::Template};
use nuncio_store::{Idempotency, IdempotentOperation};

use super::change::changing;
use super::command::{CreateBroadcast, ListBroadcasts, UpdateBroadcast};
use super::view::{BroadcastProgress, BroadcastView, sending_since};
use super::{Broadcasts, check, content};
use crate::base::list::{self, Listed};
use crate::base::{Caller, Change, UseCase, body_sender, check_version, idempotency, parse_id, parse_id_at, unknown};
use crate::messages::SendOptions;

/// Recipients deleted per transaction.
const DELETED: u32 = 500;
const TEMPLATE: &str = "content.templateId";

impl Broadcasts<'_> {
    /// Creates a draft. Reports all errors at once. The command and the options must not name different senders.
    pub async fn create(&self, caller: &Caller, mut command: CreateBroadcast, options: SendOptions) -> Result<BroadcastView> {
        caller.require(UseCase::CreateBroadcast)?;
        let key = idempotency::key(command.idempotency_key.take(), options.idempotency_key.as_deref())?;
        let now = self.ids().clock.now();
        let config = self.current_config(caller.tenant).await?;
        let sender = body_sender(&config, command.sender_id.as_deref(), options.sender.as_deref());
        command.sender_id = sender.as_ref().map_or(command.sender_id.or(options.sender), |sender| Some(sender.id.to_string()));
        command.message_type = Some(command.message_type.unwrap_or_default());
        command.track_links = Some(command.track_links.unwrap_or_default());
        command.variables = Some(command.variables.unwrap_or_default());
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateBroadcast, key, &command);
        let sender = match sender {
            Ok(sender) => sender,
            Err(error) => return Err(self.repeated_or(caller, guard.as_ref(), error).await?),
        };
        let mut broadcast = Broadcast {
            tenant: caller.tenant,
            id: self.ids().at(now),
            status: Status::Draft,
            channel: command.channel,
            message_type: command.message_type.unwrap_or_default(),
            sender: sender.id,
            version: 0,
            due_at: None,
            starved: false,
            total: 0,
            html: command.email_html_body,
            body: Body {
                name: command.name,
                text: command.text,
                content: command.content,
                email_subject: command.email_subject,
                variables: command.variables.unwrap_or_default(),
                canary: command.canary,
                halt_on: command.halt_on,
                track_links: command.track_links.unwrap_or_default(),
                quiet_hours: command.quiet_hours.as_ref().map(quiet_hours).transpose()?,
                metadata: command.metadata,
                scheduled_at: command.scheduled_at,
                ..Body::default()
            },
            updated_at: now,
            counts: Counts::default(),
        };
        if options.lenient {
            check::drop_unused(&mut broadcast);
        }
        self.insert(caller, &broadcast, guard.as_ref(), "create").await
    }

    /// Stores a draft. A repeat of its request fails with the draft that the first one made. `verb` is for the audit log.
    pub(super) async fn insert(
        &self,
        caller: &Caller,
        broadcast: &Broadcast,
        guard: Option<&Idempotency>,
        verb: &'static str,
    ) -> Result<BroadcastView> {
        if let Err(error) = self.check(broadcast).await {
            return Err(self.repeated_or(caller, guard, error).await?);
        }
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard, broadcast.id.uuid(), broadcast.updated_at).await?;
        if let Some(repeat) = repeat {
            drop(tx);
            return Err(self.repeated(caller, repeat).await?);
        }
        tx.insert_broadcast(broadcast).await?;
        let view = BroadcastView::whole(broadcast);
        Change::new("broadcast", verb, broadcast.id).to(&view).commit(tx, caller.tenant).await?;
        Ok(view)
    }

    pub(super) async fn check(&self, broadcast: &Broadcast) -> Result<()> {
        Error::if_any(check::check(broadcast, self.ids().clock.now()))?;
        self.named_template(broadcast).await.map(drop)
    }

    /// Returns the template of the broadcast, if it uses one and names it; 400 if it was deleted.
    pub(super) async fn template_of(&self, broadcast: &Broadcast) -> Result<Option<Template>> {
        self.named_template(broadcast).await.map_err(|error| match error.code() {
            ErrorCode::NotFound => content::template_deleted(),
            _ => error,
        })
    }

    /// Like [`Self::template_of`], for content of the request: 404 if there is none.
    pub(super) async fn named_template(&self, broadcast: &Broadcast) -> Result<Option<Template>> {
        let named = broadcast.body.content.as_deref().and_then(|content| content.template_id.as_deref());
        let Some(id) = named.filter(|_| content::is_template(broadcast)) else { return Ok(None) };
        let parsed = parse_id_at(TEMPLATE, id, "template")?;
        let found = self.inner.store.read().await?.find_template(broadcast.tenant, parsed).await?;
        Ok(Some(found.ok_or_else(|| unknown("template", TEMPLATE, id))?.in_use()))
    }

    pub async fn get(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::GetBroadcast)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let view = BroadcastView::whole(&broadcast);
        if broadcast.body.review.is_none() {
            return Ok(view);
        }
        let template = content::template(&mut *self.inner.store.read().await?, &broadcast).await?;
        let edited_since_review = broadcast.standing(&content::fingerprint(&broadcast, template.as_ref())).edited;
        Ok(BroadcastView { edited_since_review, ..view })
    }

    pub async fn progress(&self, caller: &Caller, id: &str) -> Result<BroadcastProgress> {
        caller.require(UseCase::GetBroadcastProgress)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let now = self.ids().clock.now();
        let mut progress = BroadcastProgress::new(&broadcast, now);
        if let (Some((since, _)), Some(end)) = (sending_since(&broadcast, now), progress.estimated_completion_at)
            && self.is_quiet(&broadcast, since, end).await?
        {
            progress.estimated_completion_at = None;
        }
        Ok(progress)
    }

    /// Returns a page of broadcasts.
    pub async fn list(&self, caller: &Caller, asked: &ListBroadcasts) -> Result<Listed<BroadcastView>> {
        caller.require(UseCase::ListBroadcasts)?;
        let (range, mut errors) = list::asked!(asked);
        let status = list::words(asked.status.as_deref(), "query.status", Status::parse, Status::ALL, &mut errors);
        let listing = self.listing(caller.tenant, &format!("broadcasts?{status:?}"), &range, errors)?;
        let page = self.inner.store.read().await?.list_broadcasts(caller.tenant, &status, listing.page).await?;
        Ok((page.items.iter().map(BroadcastView::from).collect(), self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// Updates a draft or a rejected broadcast.
    pub async fn update(&self, caller: &Caller, id: &str, command: UpdateBroadcast, lenient: bool) -> Result<BroadcastView> {
        caller.require(UseCase::UpdateBroadcast)?;
        let id = parse_id(id, "broadcast")?;
        let now = self.ids().clock.now();
        let mut wanted = self.find(caller.tenant, id).await?;
        let hours = command.quiet_hours.as_ref().map(|hours| hours.as_ref().map(quiet_hours).transpose()).transpose()?;
        let apply = |broadcast: &mut Broadcast| {
            command.apply(broadcast, &hours);
            if lenient {
                check::drop_unused(broadcast);
            }
        };
        apply(&mut wanted);
        // Report a missing template first, then a wrong status, then invalid content. What leaves a deleted one may change.
        let editable = matches!(wanted.status, Status::Draft | Status::Rejected);
        if editable && command.content.is_some() && check::check(&wanted, now).is_empty() {
            self.named_template(&wanted).await?;
        }
        let changed = self
            .change(caller.tenant, id, BroadcastAction::Edit, |broadcast, now| {
                check_version(command.expected_version, broadcast.version, "broadcast")?;
                apply(broadcast);
                Error::if_any(check::check(broadcast, now))
            })
            .await?;
        Ok(BroadcastView::whole(&changed))
    }

    /// Deletes a draft with its recipients.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteBroadcast)?;
        self.delete_in_steps(caller, parse_id(id, "broadcast")?, true).await
    }

    /// Deletes all recipients of a draft.
    pub async fn delete_contacts(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteBroadcastContact)?;
        self.delete_in_steps(caller, parse_id(id, "broadcast")?, false).await
    }

    /// Deletes the recipients of a draft, and if `whole` the draft, too. In steps, so that no transaction is long. A crash leaves a draft with
    /// fewer recipients.
    async fn delete_in_steps(&self, caller: &Caller, id: BroadcastId, whole: bool) -> Result<()> {
        let verb = if whole { "delete" } else { "remove_all_recipients" };
        loop {
            let mut tx = self.inner.store.begin().await?;
            let deleted = if whole {
                tx.delete_draft_broadcast(caller.tenant, id, DELETED).await?
            } else {
                tx.delete_broadcast_contacts(caller.tenant, id, DELETED).await?
            };
            if deleted.is_none() {
                drop(tx);
                return Err(self.no_draft(caller, id).await);
            }
            if deleted == Some(true) {
                Change::new("broadcast", verb, id).record(&mut *tx, caller.tenant).await?;
            }
            tx.commit().await?;
            if deleted == Some(true) {
                return Ok(());
            }
        }
    }

    /// Returns the error for a broadcast that is not a draft, or does not exist.
    pub(super) async fn no_draft(&self, caller: &Caller, id: BroadcastId) -> Error {
        match self.find(caller.tenant, id).await {
            Err(error) => error,
            Ok(broadcast) => match nuncio_domain::broadcast::apply(broadcast.standing(""), BroadcastAction::Prepare) {
                Err(error) => error,
                Ok(_) => changing(),
            },
        }
    }
}

impl UpdateBroadcast {
    fn apply(&self, broadcast: &mut Broadcast, hours: &Option<Option<QuietHours>>) {
        let body = &mut broadcast.body;
        set_if_given(&mut body.name, &self.name);
        set_if_given(&mut body.text, &self.text);
        set_if_given(&mut body.content, &self.content);
        set_if_given(&mut body.email_subject, &self.email_subject);
        set_if_given(&mut broadcast.html, &self.email_html_body);
        if let Some(variables) = &self.variables {
            body.variables = variables.clone().unwrap_or_default();
        }
        set_if_given(&mut body.canary, &self.canary);
        set_if_given(&mut body.quiet_hours, hours);
        set_if_given(&mut body.halt_on, &self.halt_on);
        set_if_given(&mut body.track_links, &self.track_links);
        set_if_given(&mut body.metadata, &self.metadata);
    }
}

fn quiet_hours(written: &WrittenQuietHours) -> Result<QuietHours> {
    QuietHours::new(&written.from, &written.to, written.time_zone.as_deref()).map_err(|mut faults| {
        faults.iter_mut().for_each(|fault| fault.path.insert_str(0, "quietHours."));
        Error::invalid(faults)
    })
}

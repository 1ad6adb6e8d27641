//! Actions on the page of a broadcast.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use nuncio_core::broadcasts::{CloneBroadcast, ScheduleBroadcast, SelectContacts, SendBroadcast, TestBroadcast};
use nuncio_core::is_changed_meanwhile;
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, ErrorCode, Result, Timestamp};
use serde_json::Value;

use super::content::Content;
use super::draft::Said;
use super::show::page;
use crate::App;
use crate::components::Faults;
use crate::form::{Form, recipient};
use crate::messages::new::{self, key, made};
use crate::signed::{Posted, Signed, lead_to, refuse};

/// Prefix of the fields that say what fills a variable.
const VARIABLES: &str = "variables.";

/// The response after an action.
enum Then {
    /// Redirects to another page.
    Page(String),
    /// Shows the same page with the result.
    Here(Box<Said>),
}

pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    match perform(&app, &who, &id, &form).await {
        Ok(Then::Page(path)) => lead_to(&path),
        Ok(Then::Here(said)) => page(&app, &who, &id, StatusCode::OK, &said).await,
        Err(error) if is_changed_meanwhile(&error) && form.get("do") == "send" => {
            let said = Said { at: Some(form.get("at")), sent_another: true, ..Said::default() };
            page(&app, &who, &id, StatusCode::CONFLICT, &said).await
        }
        Err(error) if matches!(error.code(), ErrorCode::Conflict | ErrorCode::BroadcastNotEditable) && form.get("do") == "update" => {
            let (edited, is_conflict) = (Some(Content::of(&form)), error.code() == ErrorCode::Conflict);
            let said = Said { edited, changed_meanwhile: is_conflict, too_late: !is_conflict, ..Said::default() };
            page(&app, &who, &id, StatusCode::CONFLICT, &said).await
        }
        Err(error) if is_too_late(&error) => lead_to_too_late(&id),
        Err(error) if matches!(error.code().status(), 400 | 402) => {
            let [to, channel, countries] = ["to", "channel", "ofCountries"].map(|name| form.get(name));
            let at = matches!(form.get("do").as_str(), "send" | "schedule").then(|| form.get("at"));
            let edited = (form.get("do") == "update").then(|| Content::of(&form));
            let said = Said {
                faults: faults(&app, &who, &error).await,
                to,
                at,
                channel,
                countries,
                variables: form.under(VARIABLES),
                edited,
                ..Said::default()
            };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &format!("/broadcasts/{id}"), &error),
    }
}

/// Returns whether the status did not allow an action, as after a second click. Another one would.
pub(crate) fn is_too_late(error: &Error) -> bool {
    error.details().get("allowedFrom").and_then(Value::as_array).is_some_and(|statuses| !statuses.is_empty())
}

/// Redirects to the page of a broadcast, which says that nothing was changed.
pub(super) fn lead_to_too_late(id: &str) -> Response {
    lead_to(&format!("/broadcasts/{id}?late=yes"))
}

/// Returns the errors under the names of the form fields.
async fn faults(app: &App, who: &SignedIn, error: &Error) -> Faults {
    let field = |path: &str| match path {
        "scheduledAt" => "at".to_owned(),
        path if path.starts_with("countries[") => "ofCountries".to_owned(),
        path => path.to_owned(),
    };
    new::faults(app, who, error).await.of_recipients().renamed(field)
}

async fn perform(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<Then> {
    let (broadcasts, caller) = (app.core.broadcasts(), &who.caller);
    let mut path = format!("/broadcasts/{id}");
    match form.get("do").as_str() {
        "send" => {
            let scheduled_at = future(app, &form.get("at"))?;
            let [version, recipients] = ["version", "recipients"].map(|name| form.get(name).parse().ok());
            let command = SendBroadcast { scheduled_at, at_once: scheduled_at.is_none(), expected: version.zip(recipients) };
            broadcasts.send(caller, id, command).await?;
        }
        "schedule" => {
            let scheduled_at = future(app, &form.get("at"))?.ok_or_else(|| Error::field("at", "is empty; must be the time to send at"))?;
            broadcasts.schedule(caller, id, ScheduleBroadcast { scheduled_at }).await?;
        }
        "update" => drop(broadcasts.update(caller, id, Content::of(form).update(), false).await?),
        "retry" => drop(broadcasts.retry_review(caller, id).await?),
        "pause" => drop(broadcasts.pause(caller, id).await?),
        "resume" => drop(broadcasts.resume(caller, id).await?),
        "cancel" => drop(broadcasts.cancel(caller, id).await?),
        "escalate" => drop(broadcasts.escalate(caller, id).await?),
        "clone" => {
            let copy = broadcasts.clone(caller, id, CloneBroadcast::default(), key(&form.get("once"))).await;
            path = format!("/broadcasts/{}", made(copy.map(|copy| copy.id), "broadcast")?);
        }
        "delete" => {
            broadcasts.delete(caller, id).await?;
            "/broadcasts".clone_into(&mut path);
        }
        "test" => {
            let test = TestBroadcast { to: recipient(&form.get("to")), contact_id: None };
            let sent = broadcasts.test(caller, id, test, key(&form.get("once"))).await;
            path = format!("/messages/{}", made(sent.map(|message| message.id), "message")?);
        }
        "select" => {
            let selected = broadcasts.select_contacts(caller, id, selection(form)?).await?;
            return Ok(Then::Here(Box::new(Said { selected: Some(selected), ..Said::default() })));
        }
        _ => return Err(Error::field("do", "is not an action of a broadcast")),
    }
    Ok(Then::Page(path))
}

fn selection(form: &Form) -> Result<SelectContacts> {
    let countries = form.get("ofCountries");
    let countries = countries.split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty()).collect();
    let channel = match form.get("channel").as_str() {
        "" => None,
        name => Some(Channel::parse(name).ok_or_else(|| Error::field("channel", format!("{name:?} is not a channel")))?),
    };
    let fields = form.under(VARIABLES).into_iter().map(|(variable, field)| (variable, field.trim().to_owned()));
    let variables = fields.filter(|(_, field)| !field.is_empty()).collect();
    Ok(SelectContacts { countries, channel, variables, ..SelectContacts::default() })
}

/// Parses the time of a broadcast. Rejects times in the past, at which the API would send at once.
fn future(app: &App, text: &str) -> Result<Option<Timestamp>> {
    let (at, now) = (parse_time(text)?, app.core.ids().clock.now());
    if at.is_some_and(|at| at <= now) {
        let now = now.to_string();
        let now = now.get(..16).unwrap_or_default().replace('T', " ");
        return Err(Error::field("at", format!("has passed: it is {now} UTC now; must be in the future")));
    }
    Ok(at)
}

/// Returns a time as the value of a date and time field.
pub(super) fn time_value(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.get(..19).unwrap_or_default();
    seconds.strip_suffix(":00").unwrap_or(seconds).to_owned()
}

/// Parses a date and time field. Browsers send it without a time zone: it is UTC, as the label says.
fn parse_time(text: &str) -> Result<Option<Timestamp>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let whole = match text.len() {
        16 => format!("{text}:00Z"),
        19 => format!("{text}Z"),
        _ => text.to_owned(),
    };
    Timestamp::parse(&whole)
        .map(Some)
        .map_err(|_| Error::field("at", format!("is {text:?}; must be a date and a time such as 2027-01-31T09:30")))
}

//! `/broadcasts/{id}`: content, progress and results.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastProgress, BroadcastStatistics, BroadcastView, BroadcastWait, PaceStatistics, RecipientCounts};
use nuncio_core::users::SignedIn;
use nuncio_domain::broadcast::{HaltOn, Status};
use nuncio_domain::{Result, limits};

use super::act::time_value;
use super::content::{editor, unsaved};
use super::draft::{self, Said, looked_up_on_request};
use super::letter::letter;
use crate::App;
use crate::charts::Columns;
use crate::components::{
    Field, ask_first, broadcast_state, channel, count, counted, data_table, figure, form_key, head, icon, may_change, money, panel,
    requested, state, time, value, words,
};
use crate::messages::new::once;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Signed, refuse};

/// Maximum number of recipients for which the page includes figures at once; for a million, they take seconds.
const INLINE: i64 = 5_000;

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    let inline = asked.get("figures").is_some();
    let said = Said { too_late: asked.get("late").is_some(), ..Said::default() };
    answer(&app, &who, &id, StatusCode::OK, &said, inline).await
}

/// Renders the page with the result of the last action.
pub(super) async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    answer(app, who, id, status, said, false).await
}

async fn answer(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said, inline: bool) -> Response {
    match one(app, who, id, said, inline).await {
        // A reload would take back what is wrong.
        Ok((title, content, live)) => followed(status, who, "/broadcasts", &title, &content, live.filter(|_| status == StatusCode::OK)),
        Err(error) => refuse(who, "/broadcasts", &error),
    }
}

async fn one(app: &App, who: &SignedIn, id: &str, said: &Said, inline: bool) -> Result<(String, Markup, Option<Live>)> {
    let broadcasts = app.core.broadcasts();
    let broadcast = broadcasts.get(&who.caller, id).await?;
    let progress = broadcasts.progress(&who.caller, id).await?;
    let wait = broadcasts.wait(&who.caller, id).await?;
    let (begun, inline) = (broadcast.started_at.is_some(), inline || broadcast.total_contacts <= INLINE);
    let statistics = if begun && inline { Some(broadcasts.statistics(&who.caller, id).await?) } else { None };
    let changes = may_change(who);
    let editable = matches!(broadcast.status, Status::Draft | Status::Rejected);
    let draft =
        if broadcast.status == Status::Draft && changes { Some(draft::panels(app, who, &broadcast, said, inline).await?) } else { None };
    let text = panel("Content", letter(app, who, &broadcast).await?);
    let line = html! { (broadcast_state(broadcast.status)) (when(&broadcast)) " · " (requested(broadcast.channel.requested())) };
    let content = html! {
        (head(Some(("/broadcasts", "Broadcasts")), words(&broadcast.name), line, acts(app, who, &broadcast)))
        @if draft.is_none() { (said.faults.summary()) }
        @if said.too_late { (too_late(&broadcast)) }
        @if let Some(edited) = said.edited.as_ref().filter(|_| !editable) { (unsaved(edited)) }
        @if let Some(reason) = &broadcast.halted_reason { (notice("It was paused automatically.", reason)) }
        @if broadcast.held_reason.is_some() {
            (notice("It was paused automatically.", "It was more than an hour late, as after an outage or from a restored copy of the database, which may have sent it already. Resume it to send it to those who wait."))
        }
        @if broadcast.status == Status::Scheduled { (schedule(who, &broadcast, said)) }
        @if draft.is_none() { (progress_panel(&broadcast, &progress, wait)) }
        @if let Some(draft) = &draft { (draft) }
        @if changes && reviews_are_used_up(&broadcast) {
            (notice(&format!("It was reviewed {} times, and is not reviewed again.", broadcast.review_attempts), "You can still request human review, duplicate it or cancel it."))
        }
        @if changes && editable { (editor(who, &broadcast, said)) }
        @if draft.is_some() { (text) (rules(&broadcast)) } @else { div class="cols even" { (text) (review(&broadcast)) (sums(&broadcast)) (rules(&broadcast)) } }
        @if let Some(statistics) = &statistics { (outcome(&broadcast, statistics)) }
        @if begun && !inline { (looked_up_on_request("Statistics", id, "Over time, by channel, country, failure reason and link. Reads every recipient, which takes a moment.", "Show")) }
        section class="panel" { header { h2 { "Id" } } div class="body" { (value(&broadcast.id.to_string())) } }
    };
    // Others change only what a person writes; a reload would take that away.
    let moves = !editable && !broadcast.status.is_final();
    Ok((broadcast.name.clone(), content, moves.then_some(Live::Whole)))
}

/// Since when it is being sent, or when it ended.
fn when(broadcast: &BroadcastView) -> Markup {
    let (word, at) = match (broadcast.status, broadcast.completed_at) {
        (Status::Sending, _) => (" since ", broadcast.started_at),
        (_, at) => (" at ", at),
    };
    html! { @if let Some(at) = at { (word) (time(at)) } }
}

/// Says that the last action changed nothing: mostly a second click.
fn too_late(broadcast: &BroadcastView) -> Markup {
    html! {
        div class="note warn" role="status" {
            (icon("alert"))
            div { b { "It is now: " (broadcast_state(broadcast.status)) } p { "Your last action changed nothing, because the status had changed before." } }
        }
    }
}

/// Returns whether a rejected broadcast was reviewed as often as possible.
fn reviews_are_used_up(broadcast: &BroadcastView) -> bool {
    broadcast.status == Status::Rejected && broadcast.review_attempts >= limits::REVIEW_ATTEMPTS
}

fn notice(title: &str, words: &str) -> Markup {
    html! { div class="note warn" { (icon("alert")) div { b { (title) } p { (words) } } } }
}

fn acts(app: &App, who: &SignedIn, broadcast: &BroadcastView) -> Markup {
    let action = format!("/broadcasts/{}", broadcast.id);
    let button = |verb: &str, word: &str, strong: bool| {
        html! { form class="plain" method="post" action=(action) { (form_key(who)) button class=(if strong { "btn go" } else { "btn" }) name="do" value=(verb) { (word) } } }
    };
    let changes = may_change(who);
    html! {
        @if changes && broadcast.status == Status::Sending { (button("pause", "Pause", false)) }
        @if changes && broadcast.status == Status::Paused { (button("resume", "Resume", true)) }
        @if changes && broadcast.status == Status::Rejected {
            @if !reviews_are_used_up(broadcast) { (button("retry", "Review again", false)) }
            (button("escalate", "Request human review", false))
        }
        @if changes && broadcast.status == Status::Draft {
            (ask_first("delete", "Delete the draft", "Delete this draft?", "It was not sent. Its recipients are deleted too.", &action,
                html! { (form_key(who)) input type="hidden" name="do" value="delete"; }))
        }
        @if changes && broadcast.status != Status::Draft && !broadcast.status.is_final() {
            (ask_first("cancel", "Cancel", "Cancel this broadcast?", &format!("{} recipients will not receive it. This cannot be undone.", count(broadcast.pending_count)),
                &action, html! { (form_key(who)) input type="hidden" name="do" value="cancel"; }))
        }
        a class="btn" href={ "/broadcasts/" (broadcast.id) "/recipients" } { "Recipients" }
        @if broadcast.started_at.is_some() {
            a class="btn" href={ "/messages?broadcast=" (broadcast.id) } { "Messages" }
            a class="btn" href={ "/broadcasts/" (broadcast.id) "/results.csv" } { "Results as CSV" }
        }
        @if changes {
            form class="plain" method="post" action=(action) {
                (form_key(who))
                input type="hidden" name="once" value=(once(app));
                button class="btn" name="do" value="clone" { "Duplicate" }
            }
        }
    }
}

/// The time of a scheduled broadcast, and the form that moves it.
fn schedule(who: &SignedIn, broadcast: &BroadcastView, said: &Said) -> Markup {
    let Some(begins) = broadcast.scheduled_at else { return html! {} };
    let value = said.at.clone().unwrap_or_else(|| time_value(begins));
    let field = Field { kind: "datetime-local", ..Field::new("at", "When (UTC)", "In the future.", &value) };
    html! {
        section class="panel" {
            header { h2 { "Sending begins " (time(begins)) } }
            @if may_change(who) {
                form class="body" method="post" action={ "/broadcasts/" (broadcast.id) } {
                    (form_key(who))
                    (field.show(&said.faults))
                    div class="row" { button class="btn" name="do" value="schedule" { "Send at this time" } }
                }
            }
        }
    }
}

/// Shows the progress, by status of the recipients.
fn progress_panel(broadcast: &BroadcastView, progress: &BroadcastProgress, wait: Option<BroadcastWait>) -> Markup {
    let total = progress.total.max(1) as f64;
    let parts = [("fok", progress.delivered), ("fmove", progress.sending), ("fbad", progress.failed), ("fstop", progress.skipped)];
    let mut from = 0.0;
    let bars: Vec<_> = parts
        .into_iter()
        .map(|(class, number)| {
            let (start, width) = (from, number as f64 / total * 100.0);
            from += width;
            let (x, width) = (format!("{start:.2}%"), format!("{width:.2}%"));
            // Failed and sending are hatched differently.
            let hatched = matches!(class, "fmove" | "fbad").then(|| format!("url(#{class})"));
            html! { rect class=(class) x=(x) width=(width) height="100%" {} @if let Some(fill) = hatched { rect fill=(fill) x=(x) width=(width) height="100%" {} } }
        })
        .collect();
    let part = |shape: &str, word: &str, number: i64| {
        html! { div { dt { (state(shape, word)) } dd { (count(number)) } dd { (format!("{:.1} %", number as f64 / total * 100.0)) } } }
    };
    let label = format!(
        "{} delivered, {} in flight, {} failed, {} skipped, {} waiting",
        progress.delivered, progress.sending, progress.failed, progress.skipped, progress.pending
    );
    html! {
        section class="panel" aria-label="Progress" {
            div class="body" {
                div class="row" {
                    b class="h" { (progress.percent_complete) " % done" }
                    span class="soft" {
                        (counted(broadcast.total_contacts as u64, "recipient"))
                        @if let Some(rate) = progress.recipients_per_second { ", " (rate) " per second" }
                        @if let Some(at) = progress.estimated_completion_at { ", completed at about " (time(at)) }
                    }
                }
                svg class="meter big" role="img" aria-label=(label) {
                    defs {
                        @for (id, turned) in [("fmove", "rotate(45)"), ("fbad", "rotate(-45)")] {
                            pattern id=(id) width="6" height="6" patternUnits="userSpaceOnUse" patternTransform=(turned) { path d="M0 0v6" class="hatch" {} }
                        }
                    }
                    @for bar in bars { (bar) }
                }
                @if let Some(wait) = wait { (waits(broadcast, wait)) }
            }
            dl class="figs" {
                (part("ok", "Delivered", progress.delivered))
                (part("move", "In flight", progress.sending))
                (part("", "Waiting", progress.pending))
                (part("bad", "Failed", progress.failed))
                (part("stop", "Skipped", progress.skipped))
            }
        }
    }
}

/// Says what the next recipients wait for.
fn waits(broadcast: &BroadcastView, wait: BroadcastWait) -> Markup {
    html! {
        p {
            @match wait {
                BroadcastWait::Canary(until) => {
                    @if let Some(canary) = broadcast.canary { "The first " (canary.percent) " % have their message. " }
                    "The others follow at " (time(until)) "."
                },
                BroadcastWait::QuietHours(until) => { "Waits for the end of quiet hours. The next recipients get no message before " (time(until)) "." },
            }
        }
    }
}

/// Shows the settings that delay or pause a broadcast, if it has any.
fn rules(broadcast: &BroadcastView) -> Markup {
    let BroadcastView { quiet_hours, canary, halt_on, .. } = broadcast;
    let halts = halt_on.map(halts).unwrap_or_default();
    if quiet_hours.is_none() && canary.is_none() && halts.is_empty() {
        return html! {};
    }
    let body = html! {
        dl class="facts" {
            @if let Some(hours) = quiet_hours {
                dt { "Quiet hours" }
                dd { (hours.from()) " to " (hours.to()) ", recipient's local time. Without a phone number: " (hours.default_zone().iana_name().unwrap_or("UTC")) "." }
            }
            @if let Some(canary) = canary { dt { "Canary" } dd { (canary.percent) " % first, the others " (exactly(canary.wait_seconds)) " later" } }
            @if !halts.is_empty() { dt { "Pauses if" } dd { (halts.join(", ")) } }
        }
    };
    panel("Sending rules", body)
}

/// Returns the limits above which a broadcast pauses.
fn halts(halt_on: HaltOn) -> Vec<String> {
    let HaltOn { failure_percent, opt_out_percent, complaint_percent } = halt_on;
    let rates = [(failure_percent, "fail"), (opt_out_percent, "opt out"), (complaint_percent, "complain")];
    rates.into_iter().filter_map(|(percent, what)| Some(format!("more than {} % {what}", percent?))).collect()
}

/// Formats a duration in the largest unit that it is a multiple of.
fn exactly(seconds: u32) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds.is_multiple_of(*length)).unwrap_or((1, "second"));
    counted(u64::from(seconds / length), unit)
}

fn review(broadcast: &BroadcastView) -> Markup {
    let body = html! {
        @match &broadcast.review_result {
            Some(review) => {
                p { b { (format!("{:.2}", review.score)) } " of 1" @if !review.categories.is_empty() { ": " (review.categories.join(", ").replace('_', " ")) } }
                p class="soft" {
                    // The reasoning of an escalated one says so.
                    @if broadcast.edited_since_review && broadcast.status == Status::Rejected { "The content was changed after this review. " }
                    (review.reasoning)
                }
            }
            None if broadcast.status == Status::PendingReview => { p class="soft" { "The review is under way." } }
            None => { p class="soft" { "It is reviewed when it is sent." } }
        }
    };
    panel("Review", body)
}

fn sums(broadcast: &BroadcastView) -> Markup {
    let body = html! {
        dl class="facts" {
            dt { "Expected" } dd { (money(broadcast.estimated_cost)) }
            dt { "Reserved" } dd { (money(Some(broadcast.reserved_amount))) }
            dt class="sum" { "Spent" } dd class="sum" { (money(Some(broadcast.actual_cost))) }
        }
    };
    panel("Money", body)
}

/// Shows results by channel, by country and by reason, and clicks on links.
fn outcome(broadcast: &BroadcastView, statistics: &BroadcastStatistics) -> Markup {
    let channels: Vec<_> = statistics.channels.iter().map(|row| (channel(row.channel).to_owned(), &row.counts)).collect();
    let countries: Vec<_> = statistics.countries.iter().map(|row| (row.country.clone(), &row.counts)).collect();
    html! {
        @if statistics.pace.len() > 1 { (pace(&statistics.pace)) }
        div class="cols" {
            (breakdown("By channel", "Channel", &channels))
            (breakdown("By country", "Country", &countries))
            (unreached(broadcast, statistics))
            @if !statistics.links.is_empty() {
                section class="panel" {
                    header { h2 { "Links" } }
                    (data_table("fix", "Opened links", &[("", "Address"), ("num w2", "Recipients"), ("num w2", "Clicks")], html! {
                        @for link in &statistics.links { tr { td { span class="clip" { (link.url) } } td class="num" { (figure(link.recipients)) } td class="num" { (figure(link.clicks)) } } }
                    }))
                }
            }
        }
    }
}

/// Shows the reasons of failed and of skipped recipients, with links to them.
fn unreached(broadcast: &BroadcastView, statistics: &BroadcastStatistics) -> Markup {
    let reasons = statistics.failures.iter().map(|failure| (failure.code.as_str().replace('_', " "), failure));
    let failed = reasons.clone().map(|(reason, failure)| (reason, "failed", failure.recipients - failure.skipped));
    let skipped = reasons.map(|(reason, failure)| (reason, "skipped", failure.skipped));
    let without = statistics.without_reason;
    let why_dropped = if broadcast.status == Status::RejectedFinal { "broadcast rejected" } else { "broadcast cancelled" };
    let others = [
        (why_dropped, "skipped", without.dropped),
        ("reason not stored", "failed", without.failed),
        ("reason not stored", "skipped", without.skipped),
    ];
    let others = others.map(|(reason, status, recipients)| (reason.to_owned(), status, recipients));
    let rows: Vec<_> = failed.chain(skipped).chain(others).filter(|(_, _, recipients)| *recipients > 0).collect();
    if rows.is_empty() {
        return html! {};
    }
    html! {
        section class="panel" {
            header { h2 { "Failed and skipped" } }
            (data_table("fix", "Failed and skipped by reason", &[("", "Reason"), ("w2", "Status"), ("num w2", "Recipients")], html! {
                @for (reason, status, recipients) in rows {
                    tr {
                        td { a class="clip" href={ "/broadcasts/" (broadcast.id) "/recipients?status=" (status) } { (reason) } }
                        td { @if status == "failed" { (state("bad", "Failed")) } @else { (state("stop", "Skipped")) } }
                        td class="num" { (figure(recipients)) }
                    }
                }
            }))
        }
    }
}

/// Draws how many messages were queued over time.
fn pace(spans: &[PaceStatistics]) -> Markup {
    let seconds = spans[0].seconds;
    let unit = match seconds {
        1 => "second".to_owned(),
        2..60 => format!("{seconds} seconds"),
        60 => "minute".to_owned(),
        61..3_600 => format!("{} minutes", seconds / 60),
        3_600 => "hour".to_owned(),
        3_601..86_400 => format!("{} hours", seconds / 3_600),
        86_400 => "day".to_owned(),
        _ => format!("{} days", seconds / 86_400),
    };
    let label = |span: &PaceStatistics| {
        let text = span.from.to_string();
        let (date, clock) = (text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default());
        let short = if seconds < 60 {
            clock
        } else if seconds < 86_400 {
            clock.get(..5).unwrap_or_default()
        } else {
            date.get(5..).unwrap_or_default()
        };
        (short.to_owned(), format!("{date} {clock}"))
    };
    let recipients: Vec<_> = spans.iter().map(|span| span.recipients as i64).collect();
    let most = recipients.iter().max().copied().unwrap_or_default();
    let (title, line) = (format!("Queued, by {unit}, UTC"), format!("At most {} in a column.", count(most)));
    let chart = Columns {
        id: "pace",
        title: &title,
        line: &line,
        unit: "From, UTC",
        labels: &spans.iter().map(label).collect::<Vec<_>>(),
        series: &[("Recipients".to_owned(), recipients)],
        write: count,
    };
    html! { section class="panel" { div class="body" { (chart.show()) } } }
}

fn breakdown(title: &str, first: &str, rows: &[(String, &RecipientCounts)]) -> Markup {
    html! {
        section class="panel" {
            header { h2 { (title) } }
            (data_table("fix", title, &[("", first), ("num", "All"), ("num", "Delivered"), ("num", "Failed"), ("num w", "Cost")], html! {
                @for (name, counts) in rows {
                    tr { td { (name) } td class="num" { (figure(counts.total)) } td class="num" { (figure(counts.delivered)) } td class="num" { (figure(counts.failed)) } td class="num w" { (money(Some(counts.cost))) } }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use nuncio_domain::Timestamp;

    use super::*;

    #[test]
    fn the_pace_is_drawn_with_its_figures() {
        let span = |minute: i64, recipients: u64| PaceStatistics { from: Timestamp::from_millis(minute * 60_000), seconds: 60, recipients };
        let drawn = pace(&[span(0, 1_200), span(1, 0), span(2, 40)]).into_string();
        for text in ["Queued, by minute", "At most 1,200 in a column.", ">00:02<", ">1970-01-01 00:01:00<", ">40<"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        assert_eq!(drawn.matches("class=\"f1\"").count(), 2, "an empty span has no column: {drawn}");
    }
}

//! Charts of volume, delivery, delivery time and cost.

use maud::{Markup, html};
use nuncio_core::messages::{DELAYS, Traffic, TrafficView};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Micros, Result, Timestamp};

use crate::App;
use crate::charts::{Bar, Columns, SERIES, bars, share};
use crate::components::{channel, count, counted, dollars, money};

/// Maximum number of table rows.
const ROWS: usize = 12;

/// A period: name in the URL, label, number of columns, hours per column, label of a column.
struct Range {
    name: &'static str,
    words: &'static str,
    columns: i64,
    hours: i64,
    unit: &'static str,
}

const RANGES: [Range; 3] = [
    Range { name: "day", words: "24 hours", columns: 24, hours: 1, unit: "hour" },
    Range { name: "week", words: "7 days", columns: 28, hours: 6, unit: "6 hours" },
    Range { name: "month", words: "30 days", columns: 30, hours: 24, unit: "day" },
];

/// Renders the panels; nothing before the first message. `asked`: the name of a range.
pub(super) async fn panels(app: &App, who: &SignedIn, asked: Option<&str>, no_messages: bool) -> Result<Markup> {
    if no_messages && asked.is_none() {
        return Ok(html! {});
    }
    let range = RANGES.iter().find(|range| Some(range.name) == asked).unwrap_or(&RANGES[0]);
    let traffic = app.core.messages().traffic(&who.caller, range.columns, range.hours).await?;
    let mut total = Traffic::default();
    traffic.by_country.iter().for_each(|(_, _, figures)| total.add(figures));
    Ok(html! {
        section class="panel" aria-labelledby="figures-t" {
            header {
                h2 id="figures-t" { "Last " (range.words) }
                nav class="row" aria-label="Span of time" {
                    @for one in &RANGES { a class="chip" href={ "/?span=" (one.name) } aria-current=[(one.name == range.name).then_some("true")] { (one.words) } }
                }
            }
            (sums(&total))
        }
        @if total != Traffic::default() {
            div class="cols even" {
                (over_time(range, &traffic, "Sent", &format!("{}, by channel.", counted(total.sent.unsigned_abs(), "message")), |figures| figures.sent, count))
                @if total.spent > 0 {
                    (over_time(range, &traffic, "Spent", &format!("{} for carriers and fees.", dollars(Micros(total.spent))), |figures| figures.spent, |sum| dollars(Micros(sum))))
                }
                (arrived(&traffic))
                (times(&traffic))
            }
        }
    })
}

fn sums(total: &Traffic) -> Markup {
    let figure = |name: &str, value: Markup, below: String| html! { div { dt { (name) } dd { (value) } dd { (below) } } };
    let (half, most) = (within(total, 50), within(total, 95));
    html! {
        dl class="figs" {
            (figure("Sent", html! { (count(total.sent)) }, "messages accepted by providers".to_owned()))
            (figure("Delivered", html! { (rate(total)) }, format!("{} of those with a final status", count(total.delivered))))
            (figure("Time to delivery", html! { (half) }, if total.delivered > 0 { format!("for half of them; {most} for 95 %") } else { "no deliveries yet".to_owned() }))
            (figure("Failed", html! { (count(total.failed)) }, "including fallbacks".to_owned()))
            @if total.spent != 0 { (figure("Spent", html! { (money(Some(Micros(total.spent)))) }, "carriers and fees".to_owned())) }
        }
    }
}

/// Returns the share delivered of messages with a final status; a dash if providers send no receipts.
fn rate(figures: &Traffic) -> String {
    let ended = figures.delivered + figures.failed;
    if ended == 0 || (figures.delivered == 0 && figures.unconfirmed > 0) { "–".to_owned() } else { share(figures.delivered, ended) }
}

/// Returns the class of delivery times that contains this percentile.
fn class(figures: &Traffic, per_cent: i64) -> Option<usize> {
    let all: i64 = figures.delays.iter().sum();
    let mut below = 0;
    figures.delays.iter().position(|number| {
        below += number;
        all > 0 && below * 100 >= all * per_cent
    })
}

fn within(figures: &Traffic, per_cent: i64) -> String {
    match class(figures, per_cent).map(|class| DELAYS.get(class)) {
        None => "–".to_owned(),
        Some(None) => "over 30 min".to_owned(),
        Some(Some(bound)) if *bound < 60_000 => format!("≤ {} s", bound / 1_000),
        Some(Some(bound)) => format!("≤ {} min", bound / 60_000),
    }
}

/// Returns the labels of the columns: short ones, and full ones for the table.
fn labels(range: &Range, spans: &[Timestamp]) -> Vec<(String, String)> {
    let text = |at: &Timestamp| {
        let text = at.to_string();
        let (date, clock) = (text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
        let short = if range.hours == 1 { clock.to_owned() } else { date.get(5..).unwrap_or_default().to_owned() };
        (short, if range.hours == 24 { date.to_owned() } else { format!("{date} {clock}") })
    };
    spans.iter().map(text).collect()
}

/// Returns series by channel: the largest channels, and the sum of the others.
fn series(traffic: &TrafficView, value: impl Fn(&Traffic) -> i64) -> Vec<(String, Vec<i64>)> {
    let mut sums: Vec<(Channel, i64)> = Vec::new();
    for (_, channel, figures) in &traffic.by_time {
        match sums.iter_mut().find(|(known, _)| known == channel) {
            Some((_, sum)) => *sum += value(figures),
            None => sums.push((*channel, value(figures))),
        }
    }
    sums.retain(|(_, sum)| *sum > 0);
    sums.sort_by_key(|(channel, sum)| (std::cmp::Reverse(*sum), channel.number()));
    let alone = if sums.len() > SERIES { SERIES - 1 } else { sums.len() };
    let values = |of: &[(Channel, i64)]| {
        let at = |span: &Timestamp| {
            let rows = traffic.by_time.iter().filter(|(at, channel, _)| at == span && of.iter().any(|(one, _)| one == channel));
            rows.map(|(_, _, figures)| value(figures)).sum::<i64>()
        };
        traffic.spans.iter().map(at).collect::<Vec<i64>>()
    };
    let mut found: Vec<_> = sums[..alone].iter().map(|one| (channel(one.0).to_owned(), values(&[*one]))).collect();
    if alone < sums.len() {
        found.push(("Others".to_owned(), values(&sums[alone..])));
    }
    found
}

/// Renders a sum over time, by channel. `line`: its caption.
fn over_time(range: &Range, traffic: &TrafficView, name: &str, line: &str, value: fn(&Traffic) -> i64, write: fn(i64) -> String) -> Markup {
    let chart = Columns {
        id: &name.to_lowercase(),
        title: &format!("{name}, by {}, UTC", range.unit),
        line,
        unit: "From, UTC",
        labels: &labels(range, &traffic.spans),
        series: &series(traffic, value),
        write,
    };
    html! { section class="panel" { div class="body" { (chart.show()) } } }
}

/// Returns the largest rows by channel and country, and the number of rows left out.
fn largest(traffic: &TrafficView, size: impl Fn(&Traffic) -> i64) -> (Vec<(String, &Traffic)>, usize) {
    let mut rows: Vec<_> = traffic.by_country.iter().filter(|(_, _, figures)| size(figures) > 0).collect();
    rows.sort_by_key(|(_, _, figures)| std::cmp::Reverse(size(figures)));
    let left = rows.len().saturating_sub(ROWS);
    let name = |by: &Channel, country: &str| {
        if country.is_empty() { channel(*by).to_owned() } else { format!("{}, {country}", channel(*by)) }
    };
    (rows.into_iter().take(ROWS).map(|(by, country, figures)| (name(by, country), figures)).collect(), left)
}

fn left_out(left: usize) -> Markup {
    html! { @if left > 0 { footer { span class="faint" { (left) " more, with fewer messages." } } } }
}

fn arrived(traffic: &TrafficView) -> Markup {
    let (rows, left) = largest(traffic, |figures| figures.sent + figures.failed);
    let bar = |(name, figures): (String, &Traffic)| {
        let ended = (figures.delivered + figures.failed).max(1) as f64;
        let known = rate(figures) != "–";
        let ends = if known { (figures.delivered as f64 / ended, 1.0) } else { (0.0, 0.0) };
        let figures = vec![rate(figures), count(figures.sent), count(figures.failed), dollars(Micros(figures.spent))];
        Bar { name, ends, figures }
    };
    let rows: Vec<Bar> = rows.into_iter().map(bar).collect();
    let columns = [("Delivered", false), ("Sent", false), ("Failed", true), ("Spent", true)];
    let line = "Of messages with a final status; the hatched part failed. A dash: the provider sends no receipts.";
    html! { section class="panel" { div class="body" { (bars("arrived", "Delivered", line, &columns, &rows)) } (left_out(left)) } }
}

fn times(traffic: &TrafficView) -> Markup {
    let (rows, left) = largest(traffic, |figures| figures.delays.iter().sum());
    let end = |figures: &Traffic, per_cent| class(figures, per_cent).map_or(0.0, |class| (class + 1) as f64 / (DELAYS.len() + 1) as f64);
    let bar = |(name, figures): (String, &Traffic)| Bar {
        name,
        ends: (end(figures, 50), end(figures, 95)),
        figures: vec![within(figures, 50), within(figures, 95)],
    };
    let rows: Vec<Bar> = rows.into_iter().map(bar).collect();
    if rows.is_empty() {
        return html! {};
    }
    let line = "From acceptance to the receipt. Bars grow in steps: 1, 2, 5, 15 s, 1, 5, 30 min, longer.";
    let columns = [("Half", false), ("95 %", false)];
    html! { section class="panel" { div class="body" { (bars("times", "Time to delivery", line, &columns, &rows)) } (left_out(left)) } }
}

//! Components of pages, one function per component of the style sheet.

use std::fmt::Display;

use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::config::Sender;
use nuncio_domain::user::Role;
use nuncio_domain::{Channel, Error, Micros, RequestedChannel, Timestamp, broadcast, message};
use qrcodegen::{QrCode, QrCodeEcc};
use serde_json::Value;

use crate::labels::{capitalised, label};

/// Renders the hidden form key.
pub(crate) fn form_key(who: &SignedIn) -> Markup {
    html! { input type="hidden" name="key" value=(who.form_key); }
}

/// Renders an icon; always accompanied by text.
pub(crate) fn icon(name: &str) -> Markup {
    html! { svg class="icon" aria-hidden="true" { use href={ "#" (name) } {} } }
}

/// Renders a status. `shape`: `ok`, `read`, `bad`, `held`, `move`, `stop`, or `""` for a waiting one.
pub(crate) fn state(shape: &str, word: &str) -> Markup {
    html! { span class="st" { i class={ "dot " (shape) } {} (word) } }
}

pub(crate) fn message_state(status: message::Status, held: bool) -> Markup {
    use message::Status;
    match status {
        _ if held => state("held", "Held"),
        Status::Queued => state("", "Waiting"),
        Status::Scheduled => state("", "Scheduled"),
        Status::Sending => state("move", "Sending"),
        Status::Sent => state("move", "Sent"),
        Status::Delivered => state("ok", "Delivered"),
        Status::Read => state("read", "Read"),
        Status::Received => state("ok", "Received"),
        Status::Cancelled => state("stop", "Cancelled"),
        Status::Failed => state("bad", "Failed"),
    }
}

pub(crate) fn broadcast_state(status: broadcast::Status) -> Markup {
    use broadcast::Status;
    match status {
        Status::Draft => state("", "Draft"),
        Status::PendingReview | Status::Approved => state("move", "In review"),
        Status::Escalated => state("held", "Human review"),
        Status::Scheduled => state("", "Scheduled"),
        Status::Sending => state("move", "Sending"),
        Status::Paused => state("held", "Paused"),
        Status::Completed => state("ok", "Completed"),
        Status::Cancelled => state("stop", "Cancelled"),
        Status::Rejected => state("bad", "Rejected by review"),
        Status::RejectedFinal => state("bad", "Rejected"),
        Status::Failed => state("bad", "Failed"),
    }
}

/// Returns the display name of a channel.
pub(crate) const fn channel(channel: Channel) -> &'static str {
    match channel {
        Channel::Sms => "SMS",
        Channel::SmsOneway => "SMS, one way",
        Channel::Whatsapp => "WhatsApp",
        Channel::Telegram => "Telegram",
        Channel::Email => "Email",
        Channel::Instagram => "Instagram",
        Channel::Voice => "Voice",
    }
}

/// Returns the display name of a requested channel.
pub(crate) const fn requested(requested: RequestedChannel) -> &'static str {
    match requested {
        RequestedChannel::Auto => "Automatic",
        RequestedChannel::Only(only) => channel(only),
    }
}

/// Returns the options of a channel selection, `first` being none of the channels.
pub(crate) const fn channels<'a>(first: (&'a str, &'a str)) -> [(&'a str, &'a str); 7] {
    [
        first,
        ("sms", "SMS"),
        ("whatsapp", "WhatsApp"),
        ("telegram", "Telegram"),
        ("email", "Email"),
        ("instagram", "Instagram"),
        ("voice", "Voice"),
    ]
}

/// Renders a time in UTC; the script converts it to the local time zone.
pub(crate) fn time(at: Timestamp) -> Markup {
    let text = at.to_string();
    let shown = format!("{} {} UTC", text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default());
    html! { time datetime=(text) title=(shown) { (shown) } }
}

/// Renders when the page was made; the script ignores changes of it.
pub(crate) fn made(at: Timestamp) -> Markup {
    let text = at.to_string();
    html! { time class="made" datetime=(text) { (text.get(11..19).unwrap_or_default()) " UTC" } }
}

/// Formats a duration in its largest unit.
pub(crate) fn age(lasting: std::time::Duration) -> String {
    let seconds = lasting.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// Returns whether this person may send, change and decide. Pages hide what a viewer may not use.
pub(crate) fn may_change(who: &SignedIn) -> bool {
    who.role > Role::Viewer
}

/// Formats an exact sum in US dollars, with at least two decimals.
pub(crate) fn dollars(sum: Micros) -> String {
    let text = sum.to_string();
    let (sign, amount) = text.strip_prefix('-').map_or(("", text.as_str()), |amount| ("−", amount));
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{sign}${}.{part:0<2}", separated(whole))
}

/// Renders an exact sum in US dollars; a dash if it is unknown.
pub(crate) fn money(sum: Option<Micros>) -> Markup {
    html! {
        @match sum {
            Some(sum) => (dollars(sum)),
            None => { span class="faint" title="Not known yet" { "–" } }
        }
    }
}

/// Renders a sum rounded to cents, with the exact one as its title. Sums below one dollar stay exact.
pub(crate) fn rounded_money(sum: Micros) -> Markup {
    const CENT: i64 = 10_000;
    let Micros(exact) = sum;
    let cents = Micros(exact.saturating_add(exact.signum() * CENT / 2) / CENT * CENT);
    if exact.unsigned_abs() < 1_000_000 || cents == sum {
        return money(Some(sum));
    }
    html! { span title=(dollars(sum)) { (dollars(cents)) } }
}

/// Formats a count with separators.
pub(crate) fn count(number: i64) -> String {
    let out = separated(&number.unsigned_abs().to_string());
    if number < 0 { format!("-{out}") } else { out }
}

/// Inserts separators between thousands.
fn separated(digits: &str) -> String {
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with its noun, such as `1 message` or `2 messages`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", figure(number), if number == 1 { "" } else { "s" })
}

/// Formats a JSON value: texts without quotes.
pub(crate) fn json_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the text as a sentence: with a capital letter and an end.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let end = if text.is_empty() || text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    // Not an address or an id, which is written as it is.
    let is_word = text
        .split_whitespace()
        .next()
        .is_some_and(|first| first.trim_end_matches([',', ':', '.', '?', '!']).chars().all(char::is_alphabetic));
    format!("{}{end}", if is_word { capitalised(text) } else { text.to_owned() })
}

/// Returns the text on one line, cut after `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns the page of a resource, if it has its own.
pub(crate) fn resource_page(id: &str) -> Option<String> {
    let pages = [("msg_", "/messages"), ("con_", "/contacts"), ("brd_", "/broadcasts"), ("snd_", "/senders"), ("tpl_", "/templates")];
    pages.iter().find(|(prefix, _)| id.starts_with(prefix)).map(|(_, page)| format!("{page}/{id}"))
}

/// Formats an unsigned count with separators.
pub(crate) fn figure(number: u64) -> String {
    count(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Renders user content in its own writing direction.
pub(crate) fn words(text: &str) -> Markup {
    html! { bdi dir="auto" { (text) } }
}

/// Renders a panel with a title.
pub(crate) fn panel(title: &str, body: Markup) -> Markup {
    html! { section class="panel" { header { h2 { (title) } } div class="body" { (body) } } }
}

/// Renders a panel that is a form, with its key.
pub(crate) fn form_panel(who: &SignedIn, title: &str, action: &str, body: Markup) -> Markup {
    html! {
        section class="panel" {
            header { h2 { (title) } }
            form class="body" method="post" action=(action) { (form_key(who)) (body) }
        }
    }
}

/// Renders a table. `columns`: class and name of each; the name of a column of buttons is for screen readers only.
pub(crate) fn data_table(class: &str, caption: &str, columns: &[(&str, &str)], rows: Markup) -> Markup {
    html! {
        table class=(class) {
            caption class="sr" { (caption) }
            thead { tr {
                @for (class, name) in columns {
                    th scope="col" class=[(!class.is_empty()).then_some(class)] {
                        @if matches!(*name, "Action" | "Actions") { span class="sr" { (name) } } @else { (name) }
                    }
                }
            } }
            tbody { (rows) }
        }
    }
}

/// Renders an empty page: what belongs on it, and how to add it.
pub(crate) fn empty(symbol: &str, title: &str, text: &str, acts: Markup) -> Markup {
    html! { div class="empty" { (icon(symbol)) h2 { (title) } p { (text) } div class="acts" { (acts) } } }
}

/// Renders the heading of a page.
pub(crate) fn head(crumb: Option<(&str, &str)>, title: Markup, line: Markup, acts: Markup) -> Markup {
    html! {
        div class="head" {
            div {
                @if let Some((href, name)) = crumb { p class="crumb" { a href=(href) { (name) } } }
                h1 { (title) }
                p { (line) }
            }
            div class="acts" { (acts) }
        }
    }
}

/// Renders the link to the next page of a list.
pub(crate) fn pager(older: Option<String>) -> Markup {
    html! { @if let Some(href) = older { footer class="pager" { span {} a class="btn" href=(href) { "Older" } } } }
}

/// Renders a value with a copy button.
pub(crate) fn value(text: &str) -> Markup {
    html! { div class="val" { code { (text) } button class="btn small" type="button" data-copy=(text) { "Copy" } } }
}

/// Renders a link that people copy, selectable without script.
pub(crate) fn link_value(id: &str, label: &str, url: &str) -> Markup {
    html! {
        div class="field" {
            label for=(id) { (label) }
            div class="val" { input class="in mono" id=(id) type="url" value=(url) readonly; button class="btn small" type="button" data-copy=(url) { "Copy" } }
        }
    }
}

/// Returns the form field of an error: an item of a list, such as `countries[0]`, was entered in the field of the list.
fn field_of(path: &str) -> &str {
    path.split_once('[').map_or(path, |(list, _)| list)
}

/// Returns the message of an error without names that only the API has.
fn worded(message: &str) -> String {
    match message.strip_prefix("messageType text requires ") {
        Some(wanted) => format!("is empty; a message needs {wanted}"),
        None if message.starts_with("messageType template takes its text") => "must be empty: the template has the text".to_owned(),
        None => message.replace("headerContent", "the header content").replace("headerType", "the header"),
    }
}

/// Errors of a form, by field.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(String, String)>);

impl Faults {
    pub(crate) fn of(error: &Error) -> Self {
        let listed = error.details().get("errors").and_then(|errors| errors.as_array());
        let fault = |fault: &serde_json::Value| Some((fault["path"].as_str()?.to_owned(), worded(fault["message"].as_str()?)));
        let found: Vec<_> = listed.into_iter().flatten().filter_map(fault).collect();
        if found.is_empty() { Self(vec![(String::new(), error.message().to_owned())]) } else { Self(found) }
    }

    /// Writes the names of senders in place of their ids.
    pub(crate) fn naming(self, senders: &[Sender]) -> Self {
        let plain = |message: String, one: &Sender| {
            let id = one.id.to_string();
            message.replace(&format!("{id} ({})", one.name), &one.name).replace(&id, &one.name)
        };
        let named = |message: String| senders.iter().fold(message, plain);
        Self(self.0.into_iter().map(|(path, message)| (path, named(message))).collect())
    }

    /// Renames the fields.
    pub(crate) fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        Self(self.0.into_iter().map(|(path, message)| (name(&path), message)).collect())
    }

    /// Words the errors of recipients of a broadcast, and leaves out all but the first few.
    pub(crate) fn of_recipients(self) -> Self {
        const SHOWN: usize = 3;
        let worded = |(path, message): (String, String)| match path.strip_prefix("contacts[").and_then(|rest| rest.split_once(']')) {
            Some((recipient, field)) => {
                (true, (String::new(), format!("{recipient}: {} {message}", field.rsplit('.').next().unwrap_or_default())))
            }
            None => (false, (path, message)),
        };
        let (theirs, others): (Vec<_>, Vec<_>) = self.0.into_iter().map(worded).partition(|(of_recipient, _)| *of_recipient);
        let more = (theirs.len() > SHOWN).then(|| (String::new(), "The same is true of others.".to_owned()));
        Self(others.into_iter().chain(theirs.into_iter().take(SHOWN)).map(|(_, fault)| fault).chain(more).collect())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(path, _)| field_of(path) == name).map(|(_, message)| message.as_str())
    }

    /// Returns all errors with their fields.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, message)| (path.as_str(), message.as_str()))
    }

    /// Returns whether this is the first field with an error: it takes the focus, so that browsers scroll to it.
    fn is_first(&self, name: &str) -> bool {
        self.first() == Some(name)
    }

    fn first(&self) -> Option<&str> {
        self.0.iter().map(|(path, _)| field_of(path)).find(|name| !name.is_empty())
    }

    /// Renders the summary above a form, with links to its fields. It takes the focus if no field does.
    pub(crate) fn summary(&self) -> Markup {
        self.listed(self.first().is_none())
    }

    /// Renders the errors. `focused`: whether browsers scroll to them.
    pub(crate) fn listed(&self, focused: bool) -> Markup {
        html! {
            @if !self.0.is_empty() {
                div class="note bad" role="alert" tabindex=[focused.then_some("-1")] autofocus[focused] {
                    (icon("alert"))
                    div {
                        b { @if self.0.len() == 1 { "There is 1 error." } @else { "There are " (self.0.len()) " errors." } }
                        @for (path, message) in &self.0 {
                            p { @if path.is_empty() { (sentence(message)) } @else { a href={ "#" (field_of(path)) } { (sentence(&format!("{} {message}", label(field_of(path))))) } } }
                        }
                    }
                }
            }
        }
    }
}

/// A text input.
pub(crate) struct Field<'a> {
    /// Its errors refer to it. The name, unless several forms of the page have a field of this name.
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) label: &'a str,
    pub(crate) hint: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) value: &'a str,
    pub(crate) autocomplete: &'a str,
    pub(crate) required: bool,
    /// Extensions of files, separated by commas.
    pub(crate) accept: &'a str,
}

impl<'a> Field<'a> {
    /// A required line of text. Browsers keep what was entered when people go back to it; secrets and codes say what they are.
    pub(crate) const fn new(name: &'a str, label: &'a str, hint: &'a str, value: &'a str) -> Self {
        Self { id: name, name, label, hint, kind: "text", value, autocomplete: "", required: true, accept: "" }
    }

    pub(crate) fn show(&self, faults: &Faults) -> Markup {
        self.within(faults, None)
    }

    /// Renders the input, with the range of a number.
    pub(crate) fn within(&self, faults: &Faults, range: Option<(i64, i64)>) -> Markup {
        let (fault, focused) = (faults.get(self.id), faults.is_first(self.id));
        let described = described(self.id, self.hint, fault);
        html! {
            div class="field" {
                label for=(self.id) { (self.label) @if !self.required { " " span class="opt" { "optional" } } }
                @if self.kind == "textarea" {
                    textarea class="in" id=(self.id) name=(self.name) dir="auto" required[self.required]
                        aria-describedby=[described.as_deref()] aria-invalid=[fault.map(|_| "true")] autofocus[focused] { (self.value) }
                } @else {
                    input class="in" id=(self.id) name=(self.name) type=(self.kind) value=(self.value)
                        autocomplete=[Some(self.autocomplete).filter(|kind| !kind.is_empty())] accept=[Some(self.accept).filter(|accept| !accept.is_empty())] min=[range.map(|(least, _)| least)] max=[range.map(|(_, most)| most)]
                        required[self.required] aria-describedby=[described.as_deref()] aria-invalid=[fault.map(|_| "true")] autofocus[focused];
                }
                (notes(self.id, self.hint, fault))
            }
        }
    }
}

/// Renders the selection of a filter. `options`: values and labels.
pub(crate) fn select(name: &str, label: &str, options: &[(&str, &str)], chosen: &str, shown: bool) -> Markup {
    html! {
        label class=[(!shown).then_some("sr")] for=(name) { (label) }
        select class="in" id=(name) name=(name) { (choices(options, chosen)) }
    }
}

/// Renders the selection of a form, with its error.
pub(crate) fn choice(name: &str, label: &str, options: &[(&str, &str)], chosen: &str, hint: &str, faults: &Faults) -> Markup {
    let fault = faults.get(name);
    let described = described(name, hint, fault);
    html! {
        div class="field" {
            label for=(name) { (label) }
            select class="in" id=(name) name=(name) aria-describedby=[described] aria-invalid=[fault.map(|_| "true")] autofocus[faults.is_first(name)] {
                (choices(options, chosen))
            }
            (notes(name, hint, fault))
        }
    }
}

fn choices(options: &[(&str, &str)], chosen: &str) -> Markup {
    html! { @for (value, word) in options { option value=(value) selected[*value == chosen] { (word) } } }
}

/// Returns the ids of the hint and the error of a field.
fn described(id: &str, hint: &str, fault: Option<&str>) -> Option<String> {
    let parts = [(!hint.is_empty()).then(|| format!("{id}-hint")), fault.map(|_| format!("{id}-fault"))];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" ")).filter(|ids| !ids.is_empty())
}

/// Renders the error and the hint of a field.
fn notes(id: &str, hint: &str, fault: Option<&str>) -> Markup {
    html! {
        @if let Some(message) = fault { p class="fault" id={ (id) "-fault" } { (message) } }
        @if !hint.is_empty() { p class="hint" id={ (id) "-hint" } { (hint) } }
    }
}

/// The version that a form is about: that of when it was opened, also after a wrong entry. After a notice that it was changed, saving is
/// meant, so it is the stored one.
pub(crate) fn version_field(opened: Option<impl Display>, changed_meanwhile: bool, stored: impl Display) -> Markup {
    let opened = opened.filter(|_| !changed_meanwhile).map(|version| version.to_string());
    html! { input type="hidden" name="version" value=(opened.unwrap_or_else(|| stored.to_string())); }
}

/// Says that what a form changes was changed since the form was opened. `stored`: the panel that shows what is stored.
pub(crate) fn changed_meanwhile(stored: &str) -> Markup {
    outdated(&format!("{stored} shows what is stored. Saving again replaces it with what you entered."))
}

/// Says that what a form is about was changed since the form was opened, and what to do.
pub(crate) fn outdated(advice: &str) -> Markup {
    html! {
        div class="note warn" role="alert" tabindex="-1" autofocus {
            (icon("alert"))
            div { b { "It was changed meanwhile." } p { (advice) } }
        }
    }
}

/// Renders a button that asks for confirmation of a permanent action. `id` is unique on the page.
pub(crate) fn ask_first(id: &str, button: &str, question: &str, text: &str, action: &str, form: Markup) -> Markup {
    html! {
        button class="btn bad" type="button" popovertarget=(id) { (button) "…" }
        div class="dlg" id=(id) popover role="dialog" aria-labelledby={ (id) "-h" } {
            form method="post" action=(action) {
                h2 id={ (id) "-h" } { (question) }
                p { (text) }
                (form)
                p class="row" {
                    button class="btn bad sure" { (button) }
                    button class="btn" type="button" popovertarget=(id) popovertargetaction="hide" { "Go back" }
                }
            }
        }
    }
}

/// Draws a QR code with its quiet zone on white, so that dark mode does not invert it; `None` for a text too long for one.
pub(crate) fn qr(text: &str, label: &str) -> Option<Markup> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let size = code.size();
    let mut path = String::new();
    for (y, x) in (0..size).flat_map(|y| (0..size).map(move |x| (y, x))).filter(|(y, x)| code.get_module(*x, *y)) {
        path.push_str(&format!("M{} {}h1v1h-1z", x + 4, y + 4));
    }
    let all = size + 8;
    Some(html! {
        svg role="img" aria-label=(label) width="216" height="216" viewBox={ "0 0 " (all) " " (all) } shape-rendering="crispEdges" {
            rect width=(all) height=(all) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!([0, 999, 1_000, 48_212, 1_000_000, -1_234].map(count), ["0", "999", "1,000", "48,212", "1,000,000", "-1,234"]);
    }

    #[test]
    fn sums_have_at_least_two_decimals() {
        let shown = [0, 1_400_000, 300_000, 53_200, -2_570_700, 1_234_000_000].map(|sum| dollars(Micros(sum)));
        assert_eq!(shown, ["$0.00", "$1.40", "$0.30", "$0.0532", "−$2.5707", "$1,234.00"]);
        let rounded = [-2_570_700, 2_575_000, 53_200, 1_500_000].map(|sum| rounded_money(Micros(sum)).into_string());
        assert_eq!(rounded, ["<span title=\"−$2.5707\">−$2.57</span>", "<span title=\"$2.575\">$2.58</span>", "$0.0532", "$1.50"]);
    }

    #[test]
    fn sentences_begin_with_a_capital_letter_and_end() {
        let texts = ["", "no route: x", "Done.", "élan?", "a@b.example is known"];
        assert_eq!(texts.map(sentence), ["", "No route: x.", "Done.", "Élan?", "a@b.example is known."]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!([shortened(" a\n b ", 9), shortened("äöü", 2), shortened("äöü", 3)], ["a b", "äö…", "äöü"]);
    }
}

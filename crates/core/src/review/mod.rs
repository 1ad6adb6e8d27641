//! Automated review of broadcasts: scores texts and gives reasons. Pure and deterministic.
//!
//! Rules detect what is never acceptable; a model trained on examples (`training/`, docs/REVIEW.md) weighs all words. Both recognize
//! patterns of spam and fraud, not meaning: a sender rejected wrongly can request a decision by a person.

mod disguise;
pub mod features;
mod finding;
mod html;
mod links;
mod lures;
mod model;
mod passages;
mod reach;
mod reviewer;
mod words;

use std::ops::Range;

use nuncio_domain::Timestamp;
use nuncio_domain::broadcast::{ReviewPolicy, ReviewResult};

use disguise::Reading;
use finding::{Category, Finding};
use html::Page;
use links::Links;
pub use model::Model;
use passages::passages;
pub use reviewer::Reviewer;
pub(crate) use reviewer::note;

/// Returns the text that readers of HTML see, without empty lines.
pub fn text_of_html(html: &str) -> String {
    let text = Page::of(html).text;
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Incremented by each change of rules or weights.
const VERSION: u32 = 9;

/// Categories with the weight of one finding, and the words for them within a sentence.
const CATEGORIES: &[(Category, &str, f64, &str)] = &[
    (Category::Phishing, "phishing", 0.6, "links with a misleading target"),
    (Category::Credentials, "credential_request", 0.6, "requests for passwords, codes or payment data"),
    (Category::Forbidden, "forbidden_goods", 0.6, "prohibited goods or services"),
    (Category::Hate, "hate_or_threat", 0.7, "hateful or threatening language"),
    (Category::Lure, "social_engineering", 0.35, "a story that is typical of fraud"),
    (Category::Adult, "adult_content", 0.35, "sexual offers"),
    (Category::Gambling, "gambling", 0.35, "gambling"),
    (Category::Disguise, "disguised_text", 0.25, "letters that hide from filters what the text says"),
    (Category::Premium, "premium_number", 0.3, "premium-rate numbers or messages"),
    (Category::ShortLink, "shortened_link", 0.3, "links that hide their target"),
    (Category::CheapLink, "suspicious_link", 0.2, "links to domains that are common in fraud"),
    (Category::Spam, "spam", 0.15, "signs of spam"),
    (Category::Anonymous, "missing_identification", 0.1, "an offer without the name of its author"),
    (Category::Blocked, "blocked_word", 1.0, "words that the operator has blocked"),
    (Category::NoWayOut, "missing_opt_out", 0.02, "an offer without a way to opt out"),
];

/// Category of findings of the model alone.
const LEARNED: &str = "likely_abuse";
/// Maximum share of the score that the model can deduct. A borderline text keeps 0.6.
const MODEL: f64 = 0.8;
/// Reduction of the margin of a text that names the domain it links to.
const NAMED: f32 = 1.0;
/// The same of one that leads to nowhere but well-known domains.
const OFFICIAL: f32 = 2.5;
/// Reduction of the margin of a text without a way to act on it.
const HARMLESS: f32 = 1.5;
/// Reduction of the margin of a passage: one of many is odd by chance.
const PASSAGE: f32 = 1.5;
/// Margin above which the words of a text are among the reasons for a rejection.
const SUSPECT: f32 = -2.0;

/// Maximum number of findings per category that count, of the text with the most.
const COUNTED: usize = 3;
/// Maximum number of fragments shown, and of characters of one.
const FLAGGED: usize = 20;
const FRAGMENT: usize = 200;

/// Content to review.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// All texts that recipients see.
    pub texts: Vec<String>,
    /// HTML that recipients see, once for each set of values.
    pub html: Vec<String>,
    /// Links outside the texts.
    pub links: Vec<String>,
    /// Name by which recipients know the sender; `""` if none.
    pub sender: String,
}

/// Reviews a broadcast's content.
pub fn review(subject: &Subject, policy: &ReviewPolicy, now: Timestamp) -> ReviewResult {
    review_with(&Model::default(), subject, policy, now)
}

/// Reviews a broadcast's content with another model.
pub fn review_with(model: &Model<'_>, subject: &Subject, policy: &ReviewPolicy, now: Timestamp) -> ReviewResult {
    let links = Links { allowed: &policy.allowed_domains };
    let in_text = |text: &str, mut findings: Vec<Finding>| {
        links.in_text(text, &mut findings);
        words::in_text(text, &mut findings);
        lures::in_text(text, &policy.blocked_words, &mut findings);
        // Where the model does not confirm a lure, it counts twice.
        if !model::is_latin(text) && findings.iter().any(|Finding(category, _)| *category == Category::Lure) {
            findings.push(Finding(Category::Lure, String::new()));
        }
        findings
    };
    let mut texts = subject.texts.clone();
    // Findings are counted per text: a hundred filled copies are no worse than the text itself.
    let mut found: Vec<_> = texts.iter().map(|text| in_text(text, Vec::new())).collect();
    for html in &subject.html {
        let (page, mut findings) = (Page::of(html), Vec::new());
        links.in_html(&page, &mut findings);
        found.push(in_text(&page.text, findings));
        texts.push(page.text);
    }
    let readings: Vec<_> = texts.iter().filter_map(|text| Some((text, Reading::of(text)?))).collect();
    for (text, reading) in &readings {
        let findings = in_text(&reading.text, reading.disguised());
        found.push(findings.into_iter().map(|finding| reading.locate(text, finding)).collect());
    }
    let mut others = Vec::new();
    subject.links.iter().for_each(|link| links.in_text(link, &mut others));
    words::offers(&texts, &subject.sender, &mut others);
    found.push(others);
    let judged = texts.iter().filter_map(|text| Some((None, text, judge(model, links, text)?)));
    let judged_as_read = readings.iter().filter_map(|(text, reading)| Some((Some(reading), *text, judge(model, links, &reading.text)?)));
    let worst =
        judged.chain(judged_as_read).max_by(|(.., (a, _)), (.., (b, _))| a.total_cmp(b)).map(|(reading, text, (margin, passage))| {
            let read = reading.map_or(text.as_str(), |reading| &reading.text);
            let place = |part: Range<usize>| {
                let part = passage.start + part.start..passage.start + part.end;
                &text[reading.map_or(part.clone(), |reading| reading.place(&part))]
            };
            (margin, model.reasons(&read[passage.clone()]).into_iter().map(place).collect::<Vec<_>>())
        });
    let is_learned = texts.iter().all(|text| model::is_learned(text));
    result(&found, worst, is_learned, policy.threshold, now)
}

/// Returns the model's judgement of all of a text, or of its worst passage, and where that is.
fn judge(model: &Model<'_>, links: Links<'_>, text: &str) -> Option<(f32, Range<usize>)> {
    let known = known(links, text);
    let mut worst = (model.judge(text)? - known - harmless(text), 0..text.len());
    for part in passages(text) {
        let words = &text[part.clone()];
        let Some(margin) = model.judge(words).map(|margin| margin - PASSAGE).filter(|margin| *margin > worst.0) else { continue };
        // Links of others are not the sender's, even if the rest of the text names it.
        let known = if links::any(words) { self::known(links, words) } else { known };
        let margin = margin - known - harmless(words);
        if margin > worst.0 {
            worst = (margin, part);
        }
    }
    Some(worst)
}

/// Returns the reduction of the margin of a text by whom it leads to.
fn known(links: Links<'_>, text: &str) -> f32 {
    if links.official(text) && !reach::has_phone_number(text) {
        return OFFICIAL;
    }
    if links.identify(text) { NAMED } else { 0.0 }
}

/// Returns the reduction of the margin of a text without a way to act on it.
fn harmless(text: &str) -> f32 {
    if reach::has_way(text) { 0.0 } else { HARMLESS }
}

fn result(found: &[Vec<Finding>], worst: Option<(f32, Vec<&str>)>, is_learned: bool, threshold: f64, now: Timestamp) -> ReviewResult {
    let (mut score, mut categories, mut parts) = (1.0, Vec::new(), Vec::new());
    if let Some((margin, _)) = &worst {
        score -= MODEL / (1.0 + f64::from(-margin).exp());
    }
    for (category, name, weight, words) in CATEGORIES {
        let counts = found.iter().map(|findings| findings.iter().filter(|Finding(c, _)| c == category).count());
        let count = counts.max().unwrap_or_default();
        if count == 0 {
            continue;
        }
        score -= weight * count.min(COUNTED) as f64;
        categories.push((*name).to_owned());
        parts.push(format!("{words} ({count})"));
    }
    let suspect = worst.filter(|(margin, _)| *margin > 0.0 || (score < threshold && *margin > SUSPECT));
    if suspect.is_some() {
        categories.push(LEARNED.to_owned());
        parts.push("wording that is typical of spam and fraud".to_owned());
    }
    // Rounded down, so that a score below the threshold stays below it.
    let score = (score.max(0.0) * 100.0_f64).floor() / 100.0;
    let verdict = if score >= threshold { "Passed" } else { "Not passed" };
    let reasoning = match parts.as_slice() {
        [] if is_learned => "Passed: no problems found.".to_owned(),
        [] => "Passed: the rules found no problems. Wording was not judged: the review has not learned this language.".to_owned(),
        parts => format!("{verdict} with a score of {score} (needed: {threshold}). Found: {}.", parts.join("; ")),
    };
    let mut flagged: Vec<String> = Vec::new();
    for Finding(_, fragment) in found.iter().flatten().filter(|Finding(_, fragment)| !fragment.is_empty()) {
        let fragment: String = fragment.chars().take(FRAGMENT).collect();
        if flagged.len() < FLAGGED && !flagged.contains(&fragment) {
            flagged.push(fragment);
        }
    }
    for fragment in suspect.iter().flat_map(|(_, reasons)| reasons) {
        if flagged.len() < FLAGGED && !flagged.iter().any(|known| known.contains(fragment)) {
            flagged.push((*fragment).to_owned());
        }
    }
    ReviewResult { score, categories, reasoning, reviewed_at: now, flagged_content: flagged, version: VERSION }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ReviewResult {
        of_subject(&Subject { texts: vec![text.to_owned()], sender: "Acme".to_owned(), ..Subject::default() })
    }

    fn of_subject(subject: &Subject) -> ReviewResult {
        review(subject, &ReviewPolicy::default(), Timestamp::from_millis(0))
    }

    fn passes(result: &ReviewResult) -> bool {
        result.score >= ReviewPolicy::default().threshold
    }

    #[test]
    fn ordinary_messages_pass() {
        for text in [
            "Hello Ada, your order 77 left our house today. Track it: https://acme.example/t/77",
            "Acme: your verification code is 123456. Never share it, and do not give anybody your password.",
            "Reminder from Dr. Lee: your appointment is tomorrow at 9:30. Reply YES to confirm.",
            "SUMMER SALE at Acme! 20% off everything until Sunday: https://acme.example/sale Reply STOP to opt out.",
            "Your invoice is ready. Please update your address in the app before Friday. Acme",
            "If you smell gas, the emergency number is 0800 111 999.",
            "We exterminate ants and cockroaches",
            "La heroína de la película",
            "We'll send your new debit card by post.",
            "We give 5 % back on your credit card purchases",
            "Don’t share your password with anyone.",
            "",
        ] {
            let result = of(text);
            assert!(passes(&result), "{text}: {result:?}");
        }
    }

    #[test]
    fn fraud_and_abuse_do_not_and_the_words_are_shown() {
        for (text, category, fragment) in [
            ("Your account is locked, log in: http://paypa1-secure.com/login", "phishing", "http://paypa1-secure.com/login"),
            ("Verify at https://paypal.com.verify-id.net/x", "phishing", "https://paypal.com.verify-id.net/x"),
            ("Log in at http://185.220.101.4/bank", "phishing", "http://185.220.101.4/bank"),
            ("See your order today!http:/185.220.101.4:81/a", "phishing", "http:/185.220.101.4:81/a"),
            ("See your order today!HTTP:185.220.101.4/b", "phishing", "HTTP:185.220.101.4/b"),
            ("Please reply with your password and PIN.", "credential_request", "Please reply with your password and PIN."),
            ("Confirme su contraseña aquí", "credential_request", "Confirme su contraseña aquí"),
            (
                "Enter your credit card number to receive the parcel",
                "credential_request",
                "Enter your credit card number to receive the parcel",
            ),
            ("Buy cocaine online, discreet delivery", "forbidden_goods", "Buy cocaine online, discreet delivery"),
            ("Vendo heroína pura", "forbidden_goods", "Vendo heroína pura"),
            ("I will kill you", "hate_or_threat", "I will kill you"),
            ("Gas the Jews!", "hate_or_threat", "Gas the Jews!"),
            ("Exterminate all of the immigrants", "hate_or_threat", "Exterminate all of the immigrants"),
            ("Please send your card number", "credential_request", "Please send your card number"),
            (
                "We'll send your new debit card, send the old credit card to us",
                "credential_request",
                "We'll send your new debit card, send the old credit card to us",
            ),
        ] {
            let result = of(text);
            assert!(!passes(&result), "{text}: {result:?}");
            assert!(result.categories.iter().any(|c| c == category), "{text}: {result:?}");
            assert!(result.flagged_content.iter().any(|f| f == fragment), "{text}: {result:?}");
            assert!(text.contains(&result.flagged_content[0]), "{text}: fragments are exact");
        }
    }

    #[test]
    fn a_code_that_is_handed_out_is_no_request_for_one() {
        for text in [
            "Your code to confirm the payment with your credit card is 123456.",
            "Introduce la clave 55821 para firmar la operación. CaixaBank",
            "Please update your credit card in the app before it expires. Netflix",
        ] {
            assert!(passes(&of(text)), "{text}: {:?}", of(text));
        }
        assert!(!passes(&of("Reply with the code that you have: we need your verification code")));
        assert!(!passes(&of("Send me the 6-digit code you just received or your account will be closed")));
    }

    /// `training/heldout.tsv` is not training data, and must never become part of it.
    #[test]
    fn texts_that_nothing_was_learned_from_are_judged_well() {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for line in include_str!("../../../../training/heldout.tsv").lines() {
            let [label, .., text] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let list = if label == "good" { &mut good } else { &mut bad };
            list.push((text, of_subject(&Subject { texts: vec![text.to_owned()], ..Subject::default() })));
        }
        let refused: Vec<_> = good.iter().filter(|(_, result)| !passes(result)).collect();
        let missed: Vec<_> = bad.iter().filter(|(_, result)| passes(result)).collect();
        assert!(good.len() >= 120 && refused.is_empty(), "{} ordinary messages, refused: {refused:#?}", good.len());
        assert!(bad.len() >= 40 && missed.len() * 20 <= bad.len(), "{} frauds, passed: {missed:#?}", bad.len());
        for (text, result) in bad.iter().filter(|(_, result)| !passes(result)) {
            assert!(!result.flagged_content.is_empty(), "{text}: {result:?}");
            assert!(result.flagged_content.iter().all(|part| text.contains(part.as_str())), "{text}: {result:?}");
        }
    }

    #[test]
    fn disguises_of_letters_hide_nothing() {
        let plain = "I will kill you";
        for text in
            ["I w\u{200b}ill ki\u{200d}ll you", "I will kіll yоu", "Ｉ ｗｉｌｌ ｋｉｌｌ ｙｏｕ", "𝐈 𝐰𝐢𝐥𝐥 𝐤𝐢𝐥𝐥 𝐲𝐨𝐮", "ɪ ᴡɪʟʟ ᴋɪʟʟ ʏᴏᴜ"]
        {
            let result = of(text);
            assert!(!passes(&result) && result.categories.contains(&"hate_or_threat".to_owned()), "{plain} as {text}: {result:?}");
            assert!(result.flagged_content.iter().all(|part| text.contains(part.as_str())), "{text}: {result:?}");
        }
        let policy = ReviewPolicy { blocked_words: vec!["casino".to_owned()], ..ReviewPolicy::default() };
        for text in ["Our c\u{200b}asino night", "Our саsino night", "Our ｃａｓｉｎｏ night", "Our c a s i n o night"] {
            let subject = Subject { texts: vec![text.to_owned()], ..Subject::default() };
            let result = review(&subject, &policy, Timestamp::from_millis(0));
            assert!(result.score < 0.1 && result.categories.contains(&"blocked_word".to_owned()), "{text}: {result:?}");
        }
        let mixed = of("Hello Ada, your раrcel from Acme is here.");
        assert!(passes(&mixed) && mixed.categories == ["disguised_text"] && mixed.flagged_content == ["раrcel"], "{mixed:?}");
    }

    #[test]
    fn other_scripts_are_read_by_rules_and_cannot_hide_a_text() {
        for text in [
            "Сбербанк: ваша карта заблокирована. Введите номер карты и код CVV: http://sber-unblock.example",
            "【建设银行】您的账户已被冻结,请登录填写卡号和密码: http://ccb.example",
            "घर बैठे रोज ₹5000 कमाएं, कोई अनुभव नहीं चाहिए। अभी टेलीग्राम पर संपर्क करें",
        ] {
            assert!(!passes(&of(text)), "{text}: {:?}", of(text));
        }
        let fraud =
            "IRS: you owe back taxes and a warrant is out for your arrest. Call 1-888-555-0142 now and pay in gift cards to avoid jail.";
        let tail = format!("{fraud} {}", "спасибо ".repeat(60));
        assert!(!passes(&of(fraud)) && !passes(&of(&tail)), "{:?}", of(&tail));
        assert!(passes(&of("Аптека: ваш заказ готов, ждём вас до пятницы.")));
        let honest = of("您的包裹已送达,请到前台领取。谢谢。");
        assert!(passes(&honest) && honest.reasoning.contains("has not learned this language"), "{honest:?}");
    }

    #[test]
    fn harmless_sentences_do_not_hide_fraud() {
        let harmless = "The garden club met on Tuesday and chose a new chairman. Tea and cake were served, as every month. ".repeat(4);
        let fraud =
            "Dear customer, your account is suspended. Verify your identity now at http://secure-verify.top/login or it will be closed.";
        assert!(!passes(&of(&format!("{harmless}{fraud} {harmless}"))));
        assert!(passes(&of(&harmless)));
    }

    #[test]
    fn a_lure_needs_its_parts_near_each_other() {
        let between = "The hall was full and the music went on until midnight, which nobody minded at all. ".repeat(6);
        let text = |between: &str| format!("The first prize went to Ada. {between}Please claim your coats at the desk.");
        let is_lure = |text: &str| of(text).categories.iter().any(|category| category == "social_engineering");
        assert!(is_lure(&text("")) && !is_lure(&text(&between)));
    }

    #[test]
    fn digits_in_place_of_letters_hide_nothing() {
        let written = of("Your acc0unt is l0cked. S3nd us your p@ssw0rd and your c4rd number");
        assert!(!passes(&written) && written.categories.iter().any(|c| c == "disguised_text"), "{written:?}");
    }

    #[test]
    fn signs_of_spam_add_up() {
        assert!(passes(&of("Act now! The offer of Acme ends tomorrow.")));
        let loud = of("ACT NOW!!! YOU HAVE WON A FREE PRIZE, CLICK HERE: https://bit.ly/x1");
        assert!(!passes(&loud), "{loud:?}");
        assert!(loud.categories.contains(&"shortened_link".to_owned()), "{loud:?}");
    }

    #[test]
    fn copies_of_a_text_and_pages_of_a_domain_count_once() {
        let texts = ["Ada", "Bo", "Cy"].map(|name| format!("Acme: dear {name}, the minutes of our meeting are at https://bit.ly/3xYz12"));
        let result = of_subject(&Subject { texts: texts.into(), ..Subject::default() });
        assert!(passes(&result) && result.categories == ["shortened_link"], "{result:?}");
        let pages = ["shop", "help", "news"].map(|page| format!(r#"<p><a href="https://acme.online/{page}">Our {page}</a></p>"#));
        let result = of_subject(&Subject { html: vec![pages.concat()], ..Subject::default() });
        assert!(passes(&result) && result.categories == ["suspicious_link"], "{result:?}");
        let hidden = of("https://bit.ly/a https://bit.ly/b https://bit.ly/c");
        assert!(!passes(&hidden), "{hidden:?}");
    }

    #[test]
    fn a_blocked_word_of_signs_alone_matches_nothing() {
        let policy = ReviewPolicy { blocked_words: ["🎰", "$$$", "casino"].map(str::to_owned).into(), ..ReviewPolicy::default() };
        let score = |text: &str| {
            let subject = Subject { texts: vec![text.to_owned()], ..Subject::default() };
            review(&subject, &policy, Timestamp::from_millis(0)).score
        };
        assert!(score("Hello from Acme") > 0.9 && score("Our CASINO night") < 0.1);
    }

    #[test]
    fn html_cannot_be_written_to_evade_the_review() {
        for html in [
            r#"<A HREF="http://185.220.101.4/bank">Read</A>"#,
            "<a\nhref='http://185.220.101.4/bank'>Read</a>",
            r#"<a data-href="https://acme.example" href=http://185.220.101.4/bank>Read</a>"#,
            "<p>Please reply with your p&#97;ssword</p>",
            "<p>Please reply with your pass<b></b>word</p>",
        ] {
            let result = of_subject(&Subject { html: vec![html.to_owned()], ..Subject::default() });
            assert!(!passes(&result), "{html}: {result:?}");
        }
    }

    #[test]
    fn a_link_in_html_must_lead_where_it_says() {
        let html = r#"<p>Your bank</p><a href="https://evil.example/x">https://mybank.example/login</a>"#;
        let subject = Subject { html: vec![html.to_owned()], sender: "Acme".to_owned(), ..Subject::default() };
        let result = of_subject(&subject);
        assert!(!passes(&result), "{result:?}");
        let good = r#"<a href="https://acme.example/x">Our <b>page</b></a>"#;
        let subject = Subject { html: vec![good.to_owned()], sender: "Acme".to_owned(), ..Subject::default() };
        assert!(passes(&of_subject(&subject)));
    }
}

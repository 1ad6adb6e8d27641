//! Detects requests for secrets, threats, forbidden goods, spam and loudness.

use super::finding::{Category, Finding};
use super::{links, reach};

/// Secrets, in English and Spanish.
const SECRETS: &[&str] = &[
    "password",
    "passcode",
    "pin",
    "pin code",
    "cvv",
    "cvc",
    "security code",
    "card number",
    "bank account",
    "account number",
    "social security",
    "ssn",
    "login details",
    "credentials",
    "seed phrase",
    "recovery phrase",
    "private key",
    "verification code",
    "one-time code",
    "digit code",
    "word phrase",
    "secret words",
    "otp",
    "contraseña",
    "clave",
    "tarjeta de crédito",
    "número de tarjeta",
    "cuenta bancaria",
    "código de verificación",
];
/// Things with a secret on them, which a sender can also hand out.
const CARDS: &[&str] = &["credit card", "debit card"];
/// Verbs by which it does: "we'll send your new debit card by post".
const HANDED_OUT: &[&str] = &["we send", "we'll send", "we will send", "send you", "we give", "we'll give", "we will give", "give you"];
/// Verbs that request a secret.
const ASKING: &[&str] = &[
    "send", "reply", "confirm", "verify", "enter", "provide", "submit", "give", "tell", "update", "validate", "share", "read", "type",
    "re-enter", "dicte", "díganos", "lea", "envíe", "envia", "confirme", "confirma", "verifique", "verifica", "introduzca", "introduce",
    "responda", "actualice", "facilite",
];
/// Places where customers change their data themselves.
const OWN_APP: &[&str] = &[
    "in the app", "in our app", "in your settings", "in settings", "en la app", "en nuestra app", "en la aplicación", "en los ajustes",
    "en ajustes",
];
/// Words for a code that a text contains, and how it is used.
const CODES: &[&str] =
    &["code", "otp", "passcode", "pin", "use", "enter", "código", "codigo", "clave", "usa", "introduce", "codice", "kode"];
/// Words that turn a request into a warning.
const NOT: &[&str] = &["never", "not", "don't", "dont", "won't", "no", "nunca", "without", "nobody", "sin"];

/// Goods and services that providers always reject.
const FORBIDDEN: &[&str] = &[
    "cocaine",
    "heroin",
    "methamphetamine",
    "crystal meth",
    "mdma",
    "ecstasy pills",
    "fentanyl",
    "buy weed",
    "cocaína",
    "vendo heroína",
    "vendemos heroína",
    "compra heroína",
    "comprar heroína",
    "venta de heroína",
    "heroína pura",
    "gramo de heroína",
    "gramos de heroína",
    "counterfeit money",
    "fake passport",
    "fake passports",
    "fake id",
    "stolen cards",
    "cloned cards",
    "hacked accounts",
    "unregistered guns",
    "buy guns",
    "guns for sale",
    "child porn",
    "viagra without prescription",
    "oxycontin without prescription",
    "guaranteed loan no credit check",
    "double your bitcoin",
];
/// Words of a sentence about drugs that helps or reports, and those of a trade.
const AGAINST_DRUGS: &[&str] = &[
    "helpline", "struggling", "addiction", "addicted", "overdose", "rehab", "recovery", "police", "seize", "seized", "matan", "ayuda",
    "adicción",
];
const TRADE: &[&str] = &["buy", "sell", "selling", "sale", "delivery", "gram", "price", "order", "vendo", "venta", "compra", "gramo"];
/// Threats and hate. Whole phrases, since single words have many uses.
const HATE: &[&str] = &[
    "kill you", "i will hurt you", "we will hurt you", "you will die", "bomb threat", "plant a bomb", "burn your house", "rape you",
    "exterminate you", "death to all", "subhuman", "te voy a matar", "vas a morir",
];
/// What is hate unless it is denied: "you don't have to kill yourself".
const KILL_YOURSELF: &str = "kill yourself";
/// Verbs that are hate if people are their object, words before it, and such people: "exterminate all the immigrants", but not "ants".
const DESTROY: &[&str] = &["exterminate", "gas", "kill"];
/// The same in the passive.
const DESTROYED: &[&str] = &["should be gassed", "should be killed", "should be shot", "should be exterminated", "must be exterminated"];
const ARTICLES: &[&str] = &["all", "every", "of", "the", "these", "those"];
const PEOPLE: &[&str] = &[
    "africans", "arabs", "asians", "blacks", "christians", "foreigners", "gays", "gypsies", "homosexuals", "immigrants", "infidels", "jew",
    "jews", "kikes", "lesbians", "mexicans", "migrants", "muslims", "refugees", "unbelievers", "women",
];
/// Words of spam.
const SPAM: &[&str] = &[
    "act now", "click here", "you have won", "you've won", "you won", "free prize", "claim your prize", "100% free", "risk free",
    "no risk", "make money fast", "earn money from home", "limited time only", "urgent action required", "once in a lifetime",
    "double your income", "no credit check", "this is not spam", "has ganado", "actúa ahora", "haz clic aquí", "dinero fácil",
];
/// Words of an offer.
const OFFER: &[&str] = &["sale", "% off", "discount", "offer", "deal", "buy", "free", "win", "oferta", "descuento", "gratis", "compra"];

/// Ways to state how to opt out.
const OPT_OUT: &[&str] = &[
    "stop", "unsubscribe", "opt out", "opt-out", "baja", "cancelar", "no recibir", "sair", "cancelar inscrição", "désabonner",
    "désinscrire", "arrêt", "abmelden", "abbestellen", "stopp", "disiscriviti", "annulla", "стоп", "отписаться",
];

/// Returns a text in lower case with blanks around its words.
fn padded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for c in text.chars() {
        let c = if c == '’' { '\'' } else { c };
        let keep = c.is_alphanumeric() || matches!(c, '\'' | '%' | '-');
        out.extend(if keep { c.to_lowercase().collect::<Vec<_>>() } else { vec![' '] });
    }
    out.push(' ');
    out.split_whitespace().fold(String::from(" "), |all, word| all + word + " ")
}

fn has(padded: &str, phrase: &str) -> bool {
    let phrase = phrase.trim_end_matches('!');
    let is_blank = |at: usize| padded.as_bytes().get(at) == Some(&b' ');
    padded.match_indices(phrase).any(|(at, _)| at > 0 && is_blank(at - 1) && is_blank(at + phrase.len()))
}

/// Finds suspicious words in a text.
pub(super) fn in_text(text: &str, findings: &mut Vec<Finding>) {
    let whole = padded(text);
    let gives_code = gives_code(&whole);
    // Sentences are searched only for what the text has at all.
    let any = |words: &[&str]| words.iter().any(|word| has(&whole, word));
    let (secrets, forbidden, spam) = ((any(SECRETS) || any(CARDS)) && !gives_code, any(FORBIDDEN), any(SPAM));
    let hate = any(HATE) || any(DESTROYED) || any(DESTROY) || has(&whole, KILL_YOURSELF);
    for sentence in sentences(text).filter(|_| secrets || forbidden || spam || hate) {
        let padded = padded(sentence);
        let mut found = |category| findings.push(Finding(category, sentence.to_owned()));
        if secrets && asks(&padded) {
            found(Category::Credentials);
        }
        if forbidden && offers_forbidden(&padded) {
            found(Category::Forbidden);
        }
        if hate && is_hate(&padded) {
            found(Category::Hate);
        }
        for _ in SPAM.iter().filter(|phrase| spam && has(&padded, phrase)) {
            found(Category::Spam);
        }
    }
    loudness(text, findings);
}

/// Returns whether a sentence threatens or calls for harm, without denying it.
fn is_hate(padded: &str) -> bool {
    let denied = || NOT.iter().any(|word| has(padded, word));
    HATE.iter().any(|phrase| has(padded, phrase)) || destroys(padded) || (has(padded, KILL_YOURSELF) && !denied())
}

/// Returns whether a sentence names forbidden goods, other than to help or to report.
fn offers_forbidden(padded: &str) -> bool {
    let any = |words: &[&str]| words.iter().any(|word| has(padded, word));
    any(FORBIDDEN) && (any(TRADE) || !any(AGAINST_DRUGS))
}

/// Returns whether a sentence requests a secret, without warning of it or leading to the sender's own app.
fn asks(padded: &str) -> bool {
    let any = |words: &[&str]| words.iter().any(|word| has(padded, word));
    let rest = HANDED_OUT.iter().fold(padded.to_owned(), |rest, phrase| rest.replace(&format!(" {phrase} "), " "));
    let asks = any(SECRETS) && any(ASKING) || any(CARDS) && ASKING.iter().any(|verb| has(&rest, verb));
    asks && !any(NOT) && !any(OWN_APP)
}

/// Returns whether a sentence calls for the destruction of people.
fn destroys(padded: &str) -> bool {
    if DESTROYED.iter().any(|phrase| has(padded, phrase)) && PEOPLE.iter().any(|people| has(padded, people)) {
        return true;
    }
    let mut words = padded.split_whitespace();
    while let Some(word) = words.next() {
        if DESTROY.contains(&word) && words.clone().find(|word| !ARTICLES.contains(word)).is_some_and(|whom| PEOPLE.contains(&whom)) {
            return true;
        }
    }
    false
}

/// Returns whether a text delivers a code: 4 to 8 digits within twelve words of a word for a code. Such texts mention passwords and cards
/// to protect them.
fn gives_code(padded: &str) -> bool {
    let words: Vec<&str> = padded.split_whitespace().collect();
    let is_code = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        (4..=8).contains(&digits) && word.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    words
        .iter()
        .enumerate()
        .any(|(at, word)| is_code(word) && words[at.saturating_sub(12)..words.len().min(at + 13)].iter().any(|near| CODES.contains(near)))
}

/// Splits a text at full stops, question and exclamation marks, and line ends.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let mut pieces = Vec::new();
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for (n, (at, c)) in chars.iter().enumerate() {
        let next_is_blank = chars.get(n + 1).is_none_or(|(_, next)| next.is_whitespace());
        if *c == '\n' || (matches!(c, '.' | '!' | '?') && next_is_blank) {
            let end = at + c.len_utf8();
            pieces.push(text[start..end].trim());
            start = end;
        }
    }
    pieces.push(text[start..].trim());
    pieces.into_iter().filter(|piece| !piece.is_empty())
}

/// Finds excessive capitals and exclamation marks.
fn loudness(text: &str, findings: &mut Vec<Finding>) {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let capitals = text.chars().filter(|c| c.is_uppercase()).count();
    if letters >= 20 && capitals * 10 > letters * 7 {
        findings.push(Finding(Category::Spam, text.lines().next().unwrap_or_default().to_owned()));
    }
    if text.contains("!!!") || text.matches('!').count() > 5 {
        findings.push(Finding(Category::Spam, "!!!".to_owned()).in_text(text));
    }
}

impl Finding {
    /// Clears the fragment if it does not occur in the text.
    fn in_text(self, text: &str) -> Self {
        if text.contains(&self.1) { self } else { Self(self.0, String::new()) }
    }
}

/// Checks that an offer identifies its sender (by name, link, address or phone number) and states how to opt out.
pub(super) fn offers(texts: &[String], sender: &str, findings: &mut Vec<Finding>) {
    let all = texts.join(" ");
    let padded = padded(&all);
    if !OFFER.iter().any(|phrase| has(&padded, phrase) || (phrase.starts_with('%') && all.contains(phrase))) {
        return;
    }
    let opens_with_name = texts.iter().any(|text| links::opening(text).is_some());
    let says_who = opens_with_name || reach::leads_to_sender(&all);
    let names = !sender.is_empty() && all.to_lowercase().contains(&sender.to_lowercase());
    if !says_who && !names {
        findings.push(Finding(Category::Anonymous, String::new()));
    }
    if !OPT_OUT.iter().any(|word| has(&padded, word)) {
        findings.push(Finding(Category::NoWayOut, String::new()));
    }
}

//! Words that ask, threaten, sell what may not be sold, or shout.

use super::finding::{Category, Finding};

/// What is asked for, English and Spanish.
const SECRETS: &[&str] = &[
    "password",
    "passcode",
    "pin",
    "pin code",
    "cvv",
    "cvc",
    "security code",
    "card number",
    "credit card",
    "debit card",
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
/// How it is asked for.
const ASKING: &[&str] = &[
    "send",
    "reply",
    "confirm",
    "verify",
    "enter",
    "provide",
    "submit",
    "give",
    "tell",
    "update",
    "validate",
    "share",
    "read",
    "type",
    "re-enter",
    "dicte",
    "díganos",
    "lea",
    "envíe",
    "envia",
    "confirme",
    "confirma",
    "verifique",
    "verifica",
    "introduzca",
    "introduce",
    "responda",
    "actualice",
    "facilite",
];
/// Where customers change their data without telling anybody.
const OWN_APP: &[&str] = &[
    "in the app",
    "in our app",
    "in your settings",
    "in settings",
    "en la app",
    "en nuestra app",
    "en la aplicación",
    "en los ajustes",
    "en ajustes",
];
/// What a code that a text hands out is called, and how it is to be used.
const CODES: &[&str] =
    &["code", "otp", "passcode", "pin", "use", "enter", "código", "codigo", "clave", "usa", "introduce", "codice", "kode"];
/// What turns asking into a warning.
const NOT: &[&str] = &["never", "not", "don't", "dont", "won't", "no", "nunca", "without", "nobody", "sin"];

/// Goods and services that providers refuse everywhere.
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
    "heroína",
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
/// Threats and hate. Whole phrases, since single words are used in many ways.
const HATE: &[&str] = &[
    "kill you",
    "kill yourself",
    "i will hurt you",
    "we will hurt you",
    "you will die",
    "bomb threat",
    "plant a bomb",
    "burn your house",
    "rape you",
    "exterminate",
    "gas the",
    "death to all",
    "subhuman",
    "te voy a matar",
    "vas a morir",
];
/// What spam says.
const SPAM: &[&str] = &[
    "act now",
    "click here",
    "you have won",
    "you've won",
    "you won",
    "free prize",
    "claim your prize",
    "100% free",
    "risk free",
    "no risk",
    "make money fast",
    "earn money from home",
    "limited time only",
    "urgent action required",
    "once in a lifetime",
    "congratulations!",
    "winner!",
    "double your income",
    "no credit check",
    "this is not spam",
    "has ganado",
    "actúa ahora",
    "haz clic aquí",
    "dinero fácil",
];
/// What an offer says.
const OFFER: &[&str] = &["sale", "% off", "discount", "offer", "deal", "buy", "free", "win", "oferta", "descuento", "gratis", "compra"];

/// How a text says that its reader can get no more of them.
const OPT_OUT: &[&str] = &[
    "stop",
    "unsubscribe",
    "opt out",
    "opt-out",
    "baja",
    "cancelar",
    "no recibir",
    "sair",
    "cancelar inscrição",
    "désabonner",
    "désinscrire",
    "arrêt",
    "abmelden",
    "abbestellen",
    "stopp",
    "disiscriviti",
    "annulla",
];

/// A text in lower case with blanks around its words.
fn padded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for c in text.chars() {
        let keep = c.is_alphanumeric() || matches!(c, '\'' | '%' | '-');
        out.extend(if keep { c.to_lowercase().collect::<Vec<_>>() } else { vec![' '] });
    }
    out.push(' ');
    out.split_whitespace().fold(String::from(" "), |all, word| all + word + " ")
}

fn has(padded: &str, phrase: &str) -> bool {
    padded.contains(&format!(" {} ", phrase.trim_end_matches('!')))
}

/// Finds words of a text.
pub(super) fn in_text(text: &str, findings: &mut Vec<Finding>) {
    let gives_code = gives_code(&padded(text));
    for sentence in sentences(text) {
        let padded = padded(sentence);
        let mut found = |category| findings.push(Finding(category, sentence.to_owned()));
        if !gives_code && asks(&padded) {
            found(Category::Credentials);
        }
        if FORBIDDEN.iter().any(|phrase| has(&padded, phrase)) {
            found(Category::Forbidden);
        }
        if HATE.iter().any(|phrase| has(&padded, phrase)) {
            found(Category::Hate);
        }
        for _ in SPAM.iter().filter(|phrase| has(&padded, phrase)) {
            found(Category::Spam);
        }
    }
    loudness(text, findings);
}

/// Whether a sentence asks for a secret, and neither warns of it nor leads into the sender's own app.
fn asks(padded: &str) -> bool {
    let any = |words: &[&str]| words.iter().any(|word| has(padded, word));
    any(SECRETS) && any(ASKING) && !any(NOT) && !any(OWN_APP)
}

/// Whether a text hands out a code: a number of 4 to 8 digits within twelve words of what calls it one. Such a text speaks of passwords
/// and cards because it protects them.
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

/// Pieces that end with a full stop, question or exclamation mark, or a line.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
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

/// Capitals and exclamation marks.
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
    /// A fragment that does not stand in the text is not shown.
    fn in_text(self, text: &str) -> Self {
        if text.contains(&self.1) { self } else { Self(self.0, String::new()) }
    }
}

/// An offer must say who makes it, and how to get no more of them. A sender with a name is known to its recipients only if the text says
/// the name, a link or a number.
pub(super) fn offers(texts: &[String], sender: &str, findings: &mut Vec<Finding>) {
    let all = texts.join(" ");
    let padded = padded(&all);
    if !OFFER.iter().any(|phrase| has(&padded, phrase) || (phrase.starts_with('%') && all.contains(phrase))) {
        return;
    }
    let says_who = all.contains("http") || all.contains("www.") || all.contains('@') || all.contains('+');
    let names = !sender.is_empty() && all.to_lowercase().contains(&sender.to_lowercase());
    if !says_who && !names {
        findings.push(Finding(Category::Anonymous, String::new()));
    }
    if !OPT_OUT.iter().any(|word| has(&padded, word)) {
        findings.push(Finding(Category::NoWayOut, String::new()));
    }
}

//! Detects whether a text leaves its reader a way to act on it.
//!
//! Fraud needs one: a link, a number to call, an address, a reply, or a payment. A text without any can only inform, even if its words
//! resemble fraud: "we declined a payment that looked unusual", "your tax return is due".

use super::links;

/// Digits in a row, ignoring separators, that make a phone number rather than an amount, a date or a code.
const DIGITS: usize = 9;

/// Words that request a reply, a call, or money, in the languages that the model has learned.
const ACTS: &[&str] = &[
    "reply", "respond", "answer", "send", "text", "forward", "whatsapp", "telegram", "transfer", "deposit", "buy", "call", "phone",
    "contact", "read", "tell", "wire", "claim", "click", "tap", "install", "download", "verify", "password", "responde", "responda",
    "contesta", "conteste", "envía", "envíe", "envia", "envie", "envíame", "manda", "mándame", "mándamelo", "escribe", "escríbeme",
    "reenvíe", "reenvía", "pasas", "transfiere", "transfiera", "deposita", "deposite", "deposites", "compra", "compres", "llama", "llame",
    "facilite", "bizum", "dicte", "ingrese", "introduzca", "verifique", "contraseña", "contacto", "necesito", "need", "responder", "mande",
    "pix", "ligue", "chame", "salva", "deposito", "preciso", "senha", "répondez", "envoie", "envoyez", "écris", "appelez", "contactez",
    "virement", "saisissez", "antworten", "schreib", "schreiben", "anrufen", "ruf", "überweise", "überweisen", "kontaktieren", "rispondi",
    "risponda", "scrivi", "scrivimi", "manda", "chiama", "chiami", "bonifico", "contatta", "inserisca", "devo", "appen", "bel", "stuur",
    "betaal", "betalen", "overmaken", "rekening", "kod", "blik", "przelej", "zadzwoń", "napisz", "zapłać", "zaplacic", "zapłacić", "podaj",
    "podasz", "ara", "arayın", "gönder", "gönderin", "yaz", "yazın", "havale", "atar", "doğrulayın", "dogrulayin", "gửi", "gọi", "chuyển",
    "liên", "nhắn", "hubungi", "kirim", "transfer", "balas", "klik", "swisha", "ring", "skriv", "betal", "betala", "скинь", "переведи",
    "переведите", "позвоните", "назовите", "пишите", "сообщите", "отправьте", "подтвердите", "أرسل", "ارسل", "اتصل", "تواصل", "حول", "भेजें",
    "कॉल",
];

/// Phrases with such words that are harmless: they lead to the known sender.
const SAFE: &[&str] = &[
    "call the number on",
    "call us on the number on",
    "llame al número de su tarjeta",
    "llama al número de tu tarjeta",
    "text stop",
    "reply stop",
    "contact us in the app",
    "contact us through the help",
    "never call you",
    "won't call you",
];

pub(super) fn has_way(text: &str) -> bool {
    if leads_to_sender(text) {
        return true;
    }
    let mut lower = text.to_lowercase();
    for phrase in SAFE {
        lower = lower.replace(phrase, " ");
    }
    lower.split(|c: char| !c.is_alphabetic()).any(|word| ACTS.contains(&word))
}

/// Returns whether a text has a link, an address or a phone number.
pub(super) fn leads_to_sender(text: &str) -> bool {
    links::any(text) || text.contains('@') || has_phone_number(text)
}

pub(super) fn has_phone_number(text: &str) -> bool {
    let mut digits = 0;
    for c in text.chars() {
        match c {
            '0'..='9' => digits += 1,
            ' ' | '-' | '.' | '(' | ')' | '/' if digits > 0 => {}
            _ => digits = 0,
        }
        if digits >= DIGITS {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::has_way;

    #[test]
    fn a_text_that_only_informs_leaves_no_way() {
        for text in [
            "We've blocked a payment of £420 because it looked unusual. If it was you, approve it in your banking app.",
            "Your plan renews on 4 June for £2.49.",
            "New device on 12/05 at 10:14. Not you? Call the number on the back of your card.",
        ] {
            assert!(!has_way(text), "{text}");
        }
        for text in [
            "Your card is blocked: card-check.info",
            "Call 0330 000 119 now",
            "Pay 020 7946 0011",
            "send me the code",
            "Escríbeme por WhatsApp",
            "write to claims@mail.example",
        ] {
            assert!(has_way(text), "{text}");
        }
    }
}

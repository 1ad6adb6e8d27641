//! Detects lures of fraud: combinations of harmless words that hardly ever occur in business messages.

use super::finding::{Category, Finding};
use super::links;

/// A lure; matches if each group has at least one word or phrase in the text.
struct Lure {
    groups: &'static [&'static [&'static str]],
    /// Whether the text must also contain a link.
    link: bool,
    category: Category,
}

const FAMILY: &[&str] = &[
    "mum", "mom", "dad", "grandma", "grandpa", "mama", "papa", "abuela", "abuelo", "maman", "mamie", "oma", "opa", "mae", "pai", "mamma",
    "nonna",
];
const NEW_PHONE: &[&str] = &[
    "new number", "my number now", "temporary number", "save this number", "phone broke", "phone is broken", "dropped my phone",
    "lost my phone", "broke my phone", "screen", "old phone", "new phone", "friend's phone", "numero nuevo", "nuevo numero",
    "guarda este numero", "roto el movil", "perdido el movil", "rompio la pantalla", "otro movil", "movil nuevo", "movil de un amigo",
    "nouveau numero", "casse mon telephone", "neue nummer", "handy kaputt", "handy ist kaputt", "novo numero", "troquei de numero",
    "nuovo numero", "rotto il telefono",
];
const PARCEL: &[&str] = &[
    "parcel", "package", "shipment", "delivery", "redelivery", "item", "paquete", "envio", "pedido", "bulto", "entrega", "encomenda",
    "pacote", "colis", "paket", "sendung", "pacco", "spedizione",
];
const FEE: &[&str] = &[
    "unpaid",
    "fee",
    "fees",
    "surcharge",
    "customs",
    "import duty",
    "tariff",
    "rebook",
    "rebooking",
    "address information",
    "zip code",
    "house number",
    "aduana",
    "portes",
    "tasas",
    "gastos de envio",
    "falta de pago",
    "abone",
    "abonelos",
    "alfandega",
    "taxa",
    "frais",
    "gebuhr",
    "zollgebuhren",
    "spese",
    "giacenza",
    "direccion incompleta",
    "direccion incorrecta",
    "direccion es incorrecta",
    "numero de portal",
];
const LOCKED: &[&str] = &[
    "locked", "suspended", "blocked", "restricted", "deactivated", "disabled", "limited", "frozen", "barred", "on hold", "paused",
    "disconnected", "will be closed", "bloqueada", "bloqueado", "suspendida", "suspendido", "desactivado", "desactivada", "limitada",
    "cancelada", "cortamos", "cortada", "bloquee", "bloqueelo", "suspendu", "gesperrt", "bloccato", "sospesa", "anomalo",
    "unusual activity", "suspicious activity", "actividad sospechosa",
];
const ACCOUNT: &[&str] = &[
    "account", "card", "bank", "banking", "sim", "line", "apple id", "wallet", "cuenta", "tarjeta", "banca", "linea", "tarjeta sim",
    "conta", "cartao", "compte", "carte", "konto", "karte", "conto", "carta",
];
const PROVE: &[&str] = &[
    "verify", "confirm", "unlock", "restore", "reactivate", "update your", "log in", "re-enter", "validate", "secure your", "verifique",
    "confirme", "confirma", "reactivar", "reactivarla", "activela", "actualice", "bloqueelo", "acceda", "verifiez", "mettez a jour",
    "verifizieren", "aktualisieren", "verifica", "blocchi", "submit",
];
const COIN: &[&str] = &["bitcoin", "bitcoins", "btc", "crypto", "criptomonedas", "usdt", "forex", "ethereum", "trading"];
const GAIN: &[&str] = &[
    "double", "guaranteed", "no risk", "never loses", "earn", "profit", "returns", "take out", "receive back", "per week", "a week",
    "withdraw", "turned", "duplica", "garantizado", "garantizada", "sin riesgo", "gana", "saca", "retira", "no pierde", "rentabilidad",
    "doublez", "garantis", "verdoppeln", "garantierter", "raddoppia", "garantito", "duplique", "lucro",
];
const FILM: &[&str] = &[
    "recorded you", "webcam", "your camera", "video of you", "compromising", "your contacts", "your friends get", "your videos",
    "password and videos", "te grabe", "video tuyo", "tu camara", "tus contactos", "tus amigos veran", "fotos comprometidas", "tus videos",
];
const CHAT: &[&str] =
    &["whatsapp", "telegram", "text me", "dm me", "message us", "reply yes", "sign up", "responde si", "escribenos", "escribe"];
const DAILY: &[&str] = &[
    "a day", "per day", "daily", "weekly", "a month guaranteed", "al dia", "diarios", "par jour", "am tag", "por dia", "al giorno",
    "from home", "desde casa",
];
const EASY: &[&str] = &[
    "no experience", "no interview", "part-time", "from home", "just your phone", "on your phone", "liking videos", "no questions",
    "sin experiencia", "sin entrevista", "desde casa", "desde el movil", "dando me gusta", "sans experience", "ohne erfahrung",
    "sem experiencia", "sem entrevista", "senza esperienza", "be your own boss", "tu movil",
];
const BORROW: &[&str] =
    &["loan", "loans", "cash", "prestamo", "prestamos", "credito", "efectivo", "emprestimo", "credit", "sofortkredit", "prestito"];
const ANYBODY: &[&str] = &[
    "no credit check", "bad credit", "upfront", "up front", "everyone accepted", "refused elsewhere", "previously refused", "no paperwork",
    "sin nomina", "sin aval", "asnef", "sin papeles", "sin papeleo", "por adelantado", "aceptamos a todos", "sem consulta",
    "sans justificatif", "ohne schufa", "senza busta paga",
];
const WON: &[&str] = &[
    "you have won", "you've won", "has won", "winner", "lucky", "been awarded", "been selected", "been chosen", "you're our",
    "you are our", "prize", "has ganado", "ha ganado", "ganador", "premiada", "te ha tocado", "ha sido seleccionado", "tu premio",
    "es tuyo", "vous avez gagne", "gewonnen", "hai vinto", "voce ganhou",
];
const COLLECT: &[&str] = &[
    "claim", "collect your", "cover postage", "processing fee", "bank details", "your bank", "and bank", "guaranteed", "tu banco",
    "cuenta bancaria", "reclama", "reclame", "pagas el envio", "solo pagas", "reclamez", "abholen", "ritira", "resgate", "spin the wheel",
    "de envio",
];
const REFUND: &[&str] = &[
    "refund", "rebate", "tax money", "grant", "stimulus", "relief payment", "reembolso", "devolucion", "ayuda", "le corresponden",
    "remboursement", "ruckerstattung", "rimborso",
];
const DETAILS: &[&str] = &[
    "card number", "your card", "bank details", "card details", "social security number", "su tarjeta", "datos bancarios",
    "numero de tarjeta", "bankdaten", "dati bancari", "coordonnees bancaires", "before it expires", "is waiting for you",
];
const SENT_CODE: &[&str] = &["code", "codes", "otp", "codigo", "cifras"];
const BY_MISTAKE: &[&str] =
    &["by mistake", "by accident", "accidentally", "por error", "sin querer", "por engano", "par erreur", "aus versehen", "per errore"];
const JUST_RECEIVED: &[&str] = &[
    "code you just received",
    "code you received",
    "code we just sent",
    "code you have just received",
    "code you get",
    "codigo que acaba de recibir",
    "codigo que acabas de recibir",
    "codigo que ha recibido",
    "codigo que acabou de receber",
    "code que vous venez de recevoir",
    "code den sie gerade erhalten",
    "codice che hai appena ricevuto",
];
const HAND_OVER: &[&str] = &[
    "send", "reply", "tell", "give", "forward", "text", "read", "share", "responda", "responde", "envie", "envia", "enviame", "digame",
    "repondez", "antworten", "rispondi", "reenviame",
];
const PUNISH: &[&str] = &[
    "warrant", "arrested", "arrest", "prosecution", "licence suspension", "dmv hold", "late fee", "late fees", "penalty", "court",
    "embargo", "recargo", "recargos", "carcel", "detencion", "orden contra usted", "majoration", "gerichtsvollzieher", "multa",
];
const OWED: &[&str] = &[
    "toll", "tolls", "fastrak", "e-zpass", "unpaid parking", "parking penalty", "tax", "fine", "legal case", "dgt", "peaje", "hacienda",
    "sancion", "amende", "pedaggio",
];
const SAFE: &[&str] = &["safe account", "secure account", "cuenta segura"];
const MOVE: &[&str] = &["move", "transfer", "pase", "transfiera", "transfieralo", "mueva"];
const CARDS: &[&str] =
    &["gift card", "gift cards", "itunes cards", "google play cards", "steam", "tarjetas regalo", "tarjetas de google play"];
const SEND_CODES: &[&str] = &["codes", "pins", "scratch", "back", "codigos"];
const DRUGS: &[&str] = &["coke", "molly", "acid", "weed", "mdma", "speed", "ketamine", "marihuana", "hachis", "pastillas"];
const DEAL: &[&str] = &["discreet", "delivered in an hour", "top stuff", "hit me up", "fast delivery", "discreta", "entrega rapida"];
const PILLS: &[&str] = &["viagra", "cialis", "xanax", "tramadol", "valium", "ozempic", "oxycodone", "blue pills", "diazepam", "pills"];
const NO_DOCTOR: &[&str] =
    &["without prescription", "no prescription", "no script", "no doctor", "sin receta", "discreet", "plain envelope", "envio discreto"];
const GAMES: &[&str] = &[
    "casino", "roulette", "slots", "free spins", "jackpot", "fixed matches", "free bets", "ruleta", "tragaperras", "giros gratis",
    "partidos amanados",
];
const PLAY: &[&str] =
    &["deposit", "bonus", "play now", "win big", "win", "no deposit", "cash out", "deposita", "bono", "juega", "gana", "retirada", "join"];
const SEEDS: &[&str] =
    &["seed phrase", "recovery phrase", "24 words", "12 words", "frase semilla", "frase de recuperacion", "24 palabras", "12 palabras"];
const LOVE: &[&str] = &[
    "my love", "my dear", "hello dear", "darling", "honey", "sergeant", "mi amor", "hola querida", "carino", "sargento", "widow", "viuda",
    "barrister", "inheritance", "herencia",
];
const SEND_MONEY: &[&str] = &[
    "western union", "shipping cost", "send me", "wire", "bank details", "bank account", "coste del envio", "enviame", "envialo",
    "datos bancarios", "gift cards", "lend me", "prestame", "mandame", "donate", "donar", "transfer", "transferir",
];
const FORTUNE: &[&str] = &[
    "million dollar", "million dollars", "milion dollar", "million usd", "million pounds", "million euros", "million euro",
    "millones de dolares", "millones de euros", "millions d'euros", "millions de dollars", "millionen euro", "millionen dollar",
    "milioni di euro", "milioni di dollari", "milhoes de dolares", "milhoes de euros",
];
const SEX: &[&str] = &[
    "naked", "horny", "sexy", "xxx", "naughty", "milfs", "bored wives", "hot girls", "sexy singles", "local girls", "desnudas",
    "calientes", "porn", "porno", "sexo", "adult singles", "shag", "dogging", "hardcore", "nude", "fantasies", "sex",
];
const MEET: &[&str] = &[
    "tonight", "near you", "in your area", "live", "text", "txt", "pics", "18", "watch", "cerca de ti", "en directo", "acceso gratis",
    "gratis", "call", "chat", "reply", "send",
];
const PER_MINUTE: &[&str] = &[
    "150p", "150ppm", "150p/msg", "per minute", "per min", "p/min", "ppm", "/msg", "std chgs", "norm150p/tone", "25p", "10p/min",
    "per msg", "per wk", "/wk", "£1.50", "£3.00", "coste por sms", "/min", "100p",
];
const SHORT_TEXT: &[&str] = &["txt", "text", "reply", "call", "stop", "envia", "llame", "llama", "dial", "listen"];

const LURES: &[Lure] = &[
    lure(&[FAMILY, NEW_PHONE]),
    with_link(&[PARCEL, FEE]),
    with_link(&[ACCOUNT, LOCKED, PROVE]),
    lure(&[COIN, GAIN]),
    lure(&[COIN, FILM]),
    lure(&[CHAT, DAILY, EASY]),
    lure(&[BORROW, ANYBODY]),
    lure(&[WON, COLLECT]),
    lure(&[REFUND, DETAILS]),
    lure(&[SENT_CODE, BY_MISTAKE]),
    of(Category::Credentials, &[JUST_RECEIVED, HAND_OVER]),
    with_link(&[OWED, PUNISH]),
    lure(&[SAFE, MOVE]),
    lure(&[CARDS, SEND_CODES]),
    lure(&[SEEDS]),
    lure(&[LOVE, SEND_MONEY]),
    lure(&[FORTUNE, SEND_MONEY]),
    of(Category::Forbidden, &[DRUGS, DEAL]),
    of(Category::Forbidden, &[PILLS, NO_DOCTOR]),
    of(Category::Adult, &[SEX, MEET]),
    of(Category::Gambling, &[GAMES, PLAY]),
    of(Category::Premium, &[PER_MINUTE, SHORT_TEXT]),
];

const fn lure(groups: &'static [&'static [&'static str]]) -> Lure {
    of(Category::Lure, groups)
}

const fn with_link(groups: &'static [&'static [&'static str]]) -> Lure {
    Lure { groups, link: true, category: Category::Lure }
}

const fn of(category: Category, groups: &'static [&'static [&'static str]]) -> Lure {
    Lure { groups, link: false, category }
}

/// Finds lures, premium-rate numbers, and words blocked by the operator.
pub(super) fn in_text(text: &str, blocked: &[String], findings: &mut Vec<Finding>) {
    let plain = Plain::of(text);
    for word in blocked {
        let word = Plain::of(word).text;
        findings.extend(plain.first(text, &[word.trim()]).map(|part| Finding(Category::Blocked, part.to_owned())));
    }
    for lure in LURES {
        let parts: Option<Vec<&str>> = lure.groups.iter().map(|group| plain.first(text, group)).collect();
        let Some(parts) = parts else { continue };
        if lure.link && !links::any(text) {
            continue;
        }
        // A lure is one finding, however many parts it has.
        let mut parts = parts.into_iter();
        findings.extend(parts.next().map(|part| Finding(lure.category, part.to_owned())));
        findings.extend(parts.map(|part| Finding(Category::Part, part.to_owned())));
    }
    findings
        .extend(text.split_whitespace().filter(|word| is_premium(word)).take(1).map(|word| Finding(Category::Premium, word.to_owned())));
}

/// Returns whether a word is a premium-rate phone number: 09 and 087 in the United Kingdom, 80x in Spain.
fn is_premium(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit());
    let digits = word.chars().all(|c| c.is_ascii_digit());
    let british =
        (10..=11).contains(&word.len()) && ["090", "091", "098", "0871", "0872", "0873"].iter().any(|start| word.starts_with(start));
    let spanish = word.len() == 9 && ["803", "806", "807", "905"].iter().any(|start| word.starts_with(start));
    digits && (british || spanish)
}

/// A text in lower case without accents, with each character's position in the original.
struct Plain {
    text: String,
    places: Vec<usize>,
}

impl Plain {
    fn of(original: &str) -> Self {
        let (mut text, mut places) = (String::from(" "), vec![0]);
        for (at, c) in original.char_indices() {
            let c = fold(c);
            // Punctuation becomes blank, so that phrases match across it.
            let keep = c.is_alphanumeric() || matches!(c, '\'' | '-' | '/' | '£' | '.');
            let c = if keep { c } else { ' ' };
            if c == ' ' && text.ends_with(' ') {
                continue;
            }
            text.push(c);
            places.resize(text.len(), at);
        }
        text.push(' ');
        places.push(original.len());
        Self { text, places }
    }

    /// Returns the first whole word or phrase of a group, as written in the original.
    fn first<'a>(&self, original: &'a str, group: &[&str]) -> Option<&'a str> {
        // A blocked word of signs alone is empty here, and would match everything.
        group.iter().filter(|phrase| !phrase.is_empty()).find_map(|phrase| {
            self.text.match_indices(phrase).find_map(|(at, _)| {
                let end = at + phrase.len();
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
                let free = phrase.starts_with('/') || edge(self.text[..at].chars().next_back());
                if !free || !edge(self.text[end..].chars().next()) {
                    return None;
                }
                original.get(*self.places.get(at)?..*self.places.get(end)?).map(str::trim_end)
            })
        })
    }
}

/// Returns a letter in lower case without its accent.
fn fold(c: char) -> char {
    match c.to_lowercase().next().unwrap_or(c) {
        'á' | 'à' | 'â' | 'ä' | 'ã' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' => 'o',
        'ú' | 'ù' | 'û' | 'ü' => 'u',
        'ñ' => 'n',
        'ç' => 'c',
        '’' => '\'',
        other => other,
    }
}

//! Detects lures of fraud: combinations of harmless words that hardly ever occur in business messages.

use std::ops::Range;

use super::finding::{Category, Finding};
use super::links;

/// Maximum distance of a lure's parts, in bytes.
const NEAR: usize = 250;
/// Maximum number of places in a text at which a lure is looked for.
const TRIED: usize = 100;

/// A lure; matches if each group has at least one word or phrase in the text.
struct Lure {
    groups: &'static [&'static [&'static str]],
    /// Whether the text must also contain a link.
    link: bool,
    /// Phrases with which the text warns of the lure.
    denied_by: &'static [&'static str],
    category: Category,
}

const FAMILY: &[&str] = &[
    "mum", "mom", "mam", "dad", "grandma", "grandpa", "mama", "papa", "abuela", "abuelo", "maman", "mamie", "oma", "opa", "mae", "pai",
    "mamma", "nonna",
];
const NEW_PHONE: &[&str] = &[
    "new number", "my number now", "temporary number", "save this number", "phone broke", "phone is broken", "dropped my phone",
    "lost my phone", "broke my phone", "screen", "old phone", "new phone", "friend's phone", "numero nuevo", "nuevo numero",
    "guarda este numero", "roto el movil", "perdido el movil", "rompio la pantalla", "otro movil", "movil nuevo", "movil de un amigo",
    "nouveau numero", "casse mon telephone", "neue nummer", "nieuwe nummer", "nieuw nummer", "novo telemovel", "caiu na agua",
    "handy kaputt", "handy ist kaputt", "novo numero", "troquei de numero", "nuovo numero", "rotto il telefono",
];
const PARCEL: &[&str] = &[
    "parcel", "package", "shipment", "delivery", "redelivery", "item", "paquete", "envio", "pedido", "bulto", "entrega", "encomenda",
    "pacote", "colis", "paket", "sendung", "pacco", "spedizione", "посылк", "посилк", "доставк", "شحنة", "طرد", "पार्सल", "荷物", "宅配",
    "包裹", "快递", "快件", "택배", "소포",
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
    "пошлин",
    "таможенн",
    "рубл",
    "мито",
    "رسوم",
    "جمارك",
    "शुल्क",
    "宛先不明",
    "関税",
    "地址错误",
    "重新派送",
    "关税",
    "주소 불일치",
    "관세",
    "미납",
];
const LOCKED: &[&str] = &[
    "locked",
    "suspended",
    "blocked",
    "restricted",
    "deactivated",
    "disabled",
    "limited",
    "frozen",
    "barred",
    "on hold",
    "paused",
    "disconnected",
    "will be closed",
    "bloqueada",
    "bloqueado",
    "suspendida",
    "suspendido",
    "desactivado",
    "desactivada",
    "limitada",
    "cancelada",
    "cortamos",
    "cortada",
    "bloquee",
    "bloqueelo",
    "suspendu",
    "gesperrt",
    "bloccato",
    "sospesa",
    "anomalo",
    "unusual activity",
    "suspicious activity",
    "actividad sospechosa",
    "заблокирован",
    "заблоковано",
    "приостановлен",
    "إيقاف",
    "حظر",
    "تعليق",
    "बंद",
    "利用停止",
    "利用を制限",
    "冻结",
    "异常",
    "정지",
    "차단",
];
const ACCOUNT: &[&str] = &[
    "account", "card", "bank", "banking", "sim", "line", "apple id", "wallet", "cuenta", "tarjeta", "banca", "linea", "tarjeta sim",
    "conta", "cartao", "compte", "carte", "konto", "karte", "conto", "carta", "карт", "счет", "счёт", "рахун", "حساب", "بطاق", "खाता",
    "口座", "アカウント", "账户", "账号", "银行卡", "계좌", "계정",
];
const PROVE: &[&str] = &[
    "verify",
    "confirm",
    "unlock",
    "restore",
    "reactivate",
    "update your",
    "log in",
    "re-enter",
    "validate",
    "secure your",
    "verifique",
    "confirme",
    "confirma",
    "reactivar",
    "reactivarla",
    "activela",
    "actualice",
    "bloqueelo",
    "acceda",
    "verifiez",
    "mettez a jour",
    "verifizieren",
    "aktualisieren",
    "verifica",
    "blocchi",
    "submit",
    "подтвердите",
    "введите",
    "разблокировк",
    "підтверд",
    "تحديث",
    "تأكيد",
    "أدخل",
    "अपडेट",
    "भरें",
    "再登録",
    "ご確認",
    "登录",
    "填写",
    "验证",
    "확인",
    "인증",
];
const COIN: &[&str] = &[
    "bitcoin",
    "bitcoins",
    "btc",
    "crypto",
    "criptomonedas",
    "usdt",
    "forex",
    "ethereum",
    "trading",
    "криптовалют",
    "биткоин",
    "عملات رقمية",
    "क्रिप्टो",
    "仮想通貨",
    "虚拟货币",
    "比特币",
    "암호화폐",
];
const GAIN: &[&str] = &[
    "double",
    "guaranteed",
    "no risk",
    "never loses",
    "earn",
    "profit",
    "returns",
    "take out",
    "receive back",
    "per week",
    "a week",
    "withdraw",
    "turned",
    "duplica",
    "garantizado",
    "garantizada",
    "sin riesgo",
    "gana",
    "saca",
    "retira",
    "no pierde",
    "rentabilidad",
    "doublez",
    "garantis",
    "verdoppeln",
    "garantierter",
    "raddoppia",
    "garantito",
    "duplique",
    "lucro",
    "гарантированн",
    "أرباح مضمونة",
    "गारंटी",
    "元本保証",
    "必ず儲かる",
    "月利",
    "保本",
    "稳赚",
    "원금 보장",
];
const FILM: &[&str] = &[
    "recorded you", "webcam", "your camera", "video of you", "compromising", "your contacts", "your friends get", "your videos",
    "password and videos", "te grabe", "video tuyo", "tu camara", "tus contactos", "tus amigos veran", "fotos comprometidas", "tus videos",
];
const CHAT: &[&str] = &[
    "whatsapp",
    "telegram",
    "text me",
    "dm me",
    "message us",
    "reply yes",
    "sign up",
    "responde si",
    "escribenos",
    "escribe",
    "телеграм",
    "واتساب",
    "تيليجرام",
    "टेलीग्राम",
    "व्हाट्सएप",
    "微信",
    "友だち追加",
    "카톡",
];
const DAILY: &[&str] = &[
    "a day", "per day", "daily", "weekly", "a month guaranteed", "al dia", "diarios", "par jour", "am tag", "por dia", "al giorno",
    "from home", "desde casa", "в день", "يوميا", "रोज", "日赚", "日給", "일당",
];
const EASY: &[&str] = &[
    "no experience",
    "no interview",
    "part-time",
    "from home",
    "just your phone",
    "on your phone",
    "liking videos",
    "no questions",
    "sin experiencia",
    "sin entrevista",
    "desde casa",
    "desde el movil",
    "dando me gusta",
    "sans experience",
    "ohne erfahrung",
    "sem experiencia",
    "sem entrevista",
    "senza esperienza",
    "be your own boss",
    "tu movil",
    "без опыта",
    "بدون خبرة",
    "अनुभव नहीं",
    "无需经验",
    "未経験",
    "경험 없이",
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
    "es tuyo", "vous avez gagne", "gewonnen", "hai vinto", "voce ganhou", "вы выиграли", "ваш приз", "ربحت", "जीता", "当選", "中奖",
    "당첨",
];
const COLLECT: &[&str] = &[
    "claim",
    "collect your",
    "cover postage",
    "processing fee",
    "bank details",
    "your bank",
    "and bank",
    "guaranteed",
    "tu banco",
    "cuenta bancaria",
    "reclama",
    "reclame",
    "pagas el envio",
    "solo pagas",
    "reclamez",
    "abholen",
    "ritira",
    "resgate",
    "spin the wheel",
    "de envio",
    "получить приз",
    "получения приза",
    "رقم بطاقتك",
    "لاستلام",
    "दावा",
    "受け取",
    "领取",
    "领奖",
    "수령",
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
const NEVER: &[&str] = &["will never ask", "would never ask", "never ask you", "nunca te pediremos", "nunca le pediremos"];
const CARDS: &[&str] =
    &["gift card", "gift cards", "itunes cards", "google play cards", "steam", "tarjetas regalo", "tarjetas de google play"];
const SEND_CODES: &[&str] = &["codes", "pins", "scratch", "the back", "codigos"];
const DRUGS: &[&str] = &[
    "coke", "molly", "acid", "weed", "mdma", "speed", "ketamine", "marihuana", "hachis", "pastillas", "мефедрон", "гашиш", "кокаин",
    "героин", "حشيش", "大麻", "冰毒", "필로폰",
];
const DEAL: &[&str] = &[
    "discreet", "delivered in an hour", "top stuff", "hit me up", "fast delivery", "discreta", "entrega rapida", "закладк", "продаю",
    "للبيع", "手渡し", "出售", "판매",
];
const PILLS: &[&str] = &["viagra", "cialis", "xanax", "tramadol", "valium", "ozempic", "oxycodone", "blue pills", "diazepam", "pills"];
const NO_DOCTOR: &[&str] =
    &["without prescription", "no prescription", "no script", "no doctor", "sin receta", "discreet", "plain envelope", "envio discreto"];
const GAMES: &[&str] = &[
    "casino", "roulette", "slots", "free spins", "jackpot", "fixed matches", "free bets", "ruleta", "tragaperras", "giros gratis",
    "partidos amanados", "казино", "كازينو", "कैसीनो", "カジノ", "赌场", "百家乐", "카지노", "바카라",
];
const PLAY: &[&str] = &[
    "deposit", "bonus", "play now", "win big", "win", "no deposit", "cash out", "deposita", "bono", "juega", "gana", "retirada", "join",
    "бонус", "депозит", "مكافأة", "बोनस", "ボーナス", "注册送", "提现", "보너스",
];
const FOR_FUN: &[&str] = &[
    "charity", "fundraiser", "fundraising", "hospice", "good cause", "fun money", "play money", "raffle", "cinema", "film", "films",
    "movie", "screening", "premiere", "theatre", "cine", "pelicula", "kino", "spendenabend", "benefica", "fiesta", "party",
];
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
const DEMAND: &[&str] = &[
    "pay", "send", "transfer", "dollars", "pagas", "paga", "pague", "pagar", "pago", "zahl", "zahle", "zahlst", "zahlen", "bezahlst",
    "uberweise", "paie", "paies", "payez", "payer", "paghi", "pagare", "pagar", "плати", "заплати", "ادفع",
];
const DEAR_ONES: &[&str] = &[
    "your family",
    "your kids",
    "your children",
    "your wife",
    "your husband",
    "your son",
    "your daughter",
    "your legs",
    "where you live",
    "your house",
    "tu familia",
    "tus hijos",
    "tu hija",
    "tu hijo",
    "donde vives",
    "tu casa",
    "ta famille",
    "tes enfants",
    "ou tu habites",
    "chez toi",
    "deine familie",
    "deiner familie",
    "deine kinder",
    "deinen kindern",
    "wo du wohnst",
    "sua familia",
    "seus filhos",
    "onde voce mora",
    "tua famiglia",
    "tuoi figli",
    "dove abiti",
    "dove vivi",
    "где ты живёшь",
    "где ты живешь",
    "твоя семья",
    "твою семью",
];
const HARM: &[&str] = &[
    "you will regret",
    "you'll regret",
    "will regret it",
    "break your",
    "hurt your",
    "will hurt",
    "burn your",
    "burn down",
    "something bad",
    "something will happen",
    "will happen to your",
    "haremos dano",
    "hare dano",
    "te arrepentiras",
    "lo lamentaras",
    "vas a arrepentir",
    "algo malo",
    "tu le regretteras",
    "vas le regretter",
    "du mal a",
    "faire du mal",
    "wirst es bereuen",
    "wirst du es bereuen",
    "bereuen",
    "passiert etwas",
    "etwas passiert",
    "vai se arrepender",
    "algo ruim",
    "fazer mal",
    "te ne pentirai",
    "del male",
    "qualcosa di brutto",
    "пожалеешь",
    "prend a ta famille",
    "prendre a ta famille",
    "passiert deiner",
    "sofrer as consequencias",
];
const SECRET: &[&str] = &[
    "cvv",
    "номер карты",
    "пин-код",
    "пароль",
    "дані картки",
    "данные карты",
    "الرقم السري",
    "رقم بطاقتك",
    "بيانات بطاقتك",
    "كلمة المرور",
    "ओटीपी",
    "पिन",
    "暗証番号",
    "卡号",
    "密码",
    "카드번호",
    "비밀번호",
];
const ENTER: &[&str] = &[
    "введите", "отправьте", "пришлите", "підтвердіть", "введіть", "إدخال", "أدخل", "أرسل", "لتحديث", "भरें", "भेजें", "再登録", "入力", "填写",
    "输入", "回复", "입력",
];
const SEX: &[&str] = &[
    "horny", "xxx", "naughty", "milf", "milfs", "bored wives", "hot girls", "sexy singles", "local girls", "calientes", "porn", "porno",
    "sexo", "adult singles", "dogging",
];
const MEET: &[&str] = &[
    "tonight", "near you", "in your area", "live", "text", "txt", "pics", "18", "watch", "cerca de ti", "en directo", "acceso gratis",
    "gratis", "call", "chat", "reply", "send",
];
/// Words that are also those of films, bands, shops and clinics.
const NUDITY: &[&str] = &["naked", "sexy", "desnudas", "shag", "hardcore", "nude", "nudes", "fantasies", "sex"];
const DATE: &[&str] = &[
    "near you", "in your area", "pics", "my photos", "webcam", "chat", "no strings", "hook up", "cerca de ti", "en directo",
    "acceso gratis", "txt", "live girls", "call me", "text me",
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
    Lure { category: Category::Credentials, ..with_link(&[LOCKED, SECRET, ENTER]) },
    with_link(&[OWED, PUNISH]),
    Lure { denied_by: NEVER, ..lure(&[SAFE, MOVE]) },
    lure(&[CARDS, SEND_CODES]),
    lure(&[SEEDS]),
    lure(&[LOVE, SEND_MONEY]),
    lure(&[FORTUNE, SEND_MONEY]),
    of(Category::Hate, &[DEMAND, DEAR_ONES, HARM]),
    of(Category::Forbidden, &[DRUGS, DEAL]),
    of(Category::Forbidden, &[PILLS, NO_DOCTOR]),
    of(Category::Adult, &[SEX, MEET]),
    of(Category::Adult, &[NUDITY, DATE]),
    Lure { denied_by: FOR_FUN, ..of(Category::Gambling, &[GAMES, PLAY]) },
    of(Category::Premium, &[PER_MINUTE, SHORT_TEXT]),
];

const fn lure(groups: &'static [&'static [&'static str]]) -> Lure {
    of(Category::Lure, groups)
}

const fn with_link(groups: &'static [&'static [&'static str]]) -> Lure {
    Lure { link: true, ..lure(groups) }
}

const fn of(category: Category, groups: &'static [&'static [&'static str]]) -> Lure {
    Lure { groups, link: false, denied_by: &[], category }
}

/// Finds lures, premium-rate numbers, and words blocked by the operator.
pub(super) fn in_text(text: &str, blocked: &[String], findings: &mut Vec<Finding>) {
    let plain = Plain::of(text);
    for word in blocked {
        let word = Plain::of(word).text;
        findings.extend(plain.first(text, &[word.trim()]).map(|part| Finding(Category::Blocked, part.to_owned())));
    }
    for lure in LURES {
        let Some(parts) = plain.together(lure.groups) else { continue };
        if (lure.link && !links::any(plain.around(text, &parts))) || plain.first(text, lure.denied_by).is_some() {
            continue;
        }
        // A lure is one finding, however many parts it has.
        let mut parts = parts.into_iter().filter_map(|part| plain.written(text, part));
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
    let british = word.len() == 11 && ["090", "091", "098", "0871", "0872", "0873"].iter().any(|start| word.starts_with(start));
    let spanish = word.len() == 9 && ["803", "806", "807", "905"].iter().any(|start| word.starts_with(start));
    digits && (british || spanish)
}

/// A text in lower case without accents, with each character's position in the original.
struct Plain {
    text: String,
    places: Vec<usize>,
    /// Its words in alphabetical order, in which phrases are looked up.
    words: Vec<Range<usize>>,
}

impl Plain {
    fn of(original: &str) -> Self {
        let (mut text, mut places) = (String::from(" "), vec![0]);
        for (at, c) in original.char_indices() {
            let c = fold(c);
            // Punctuation becomes blank, so that phrases match across it.
            let keep = c.is_alphanumeric() || matches!(c, '\'' | '-' | '/' | '£' | '.') || is_mark(c);
            let c = if keep { c } else { ' ' };
            if c == ' ' && text.ends_with(' ') {
                continue;
            }
            text.push(c);
            places.resize(text.len(), at);
        }
        text.push(' ');
        places.push(original.len());
        let mut words: Vec<_> = words(&text).collect();
        words.sort_unstable_by_key(|word| (&text[word.clone()], word.start));
        Self { text, places, words }
    }

    /// Returns the first whole word or phrase of a group, as written in the original.
    fn first<'a>(&self, original: &'a str, group: &[&str]) -> Option<&'a str> {
        self.all(group).next().and_then(|part| self.written(original, part))
    }

    /// Returns where the words and phrases of a group are.
    fn all<'a>(&'a self, group: &'a [&'a str]) -> impl Iterator<Item = Range<usize>> + 'a {
        group.iter().flat_map(|phrase| self.places_of(phrase))
    }

    fn places_of(&self, phrase: &str) -> Vec<Range<usize>> {
        // A blocked word of signs alone is empty here, and would match everything.
        if phrase.is_empty() {
            return Vec::new();
        }
        let part = |at: usize| at..at + phrase.len();
        // Other scripts join words, or have no blanks between them: their entries are stems.
        let Some(first) = words(phrase).next().filter(|_| is_latin(phrase)) else {
            return self.text.match_indices(phrase).map(|(at, _)| part(at)).collect();
        };
        let word = |range: &Range<usize>| &self.text[range.clone()];
        let from = self.words.partition_point(|range| word(range) < &phrase[first.clone()]);
        let same = self.words[from..].iter().take_while(|range| word(range) == &phrase[first.clone()]);
        let starts = same.filter_map(|range| range.start.checked_sub(first.start));
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let fits =
            |at: &usize| self.text.get(*at..).and_then(|rest| rest.strip_prefix(phrase)).is_some_and(|rest| edge(rest.chars().next()));
        let free = |at: &usize| phrase.starts_with('/') || edge(self.text[..*at].chars().next_back());
        starts.filter(|at| fits(at) && free(at)).map(part).collect()
    }

    /// Returns a word or phrase of each group that are near each other: in a long text, those far apart belong to different matters.
    fn together(&self, groups: &[&[&str]]) -> Option<Vec<Range<usize>>> {
        let (first, others) = groups.split_first()?;
        let mut starts = self.all(first).peekable();
        starts.peek()?;
        let others: Vec<Vec<Range<usize>>> = others.iter().map(|group| self.all(group).collect()).collect();
        if others.iter().any(Vec::is_empty) {
            return None;
        }
        starts.take(TRIED).find_map(|start| {
            let near = |part: &&Range<usize>| part.start.abs_diff(start.start) <= NEAR;
            let parts = others.iter().map(|group| group.iter().find(near).cloned());
            std::iter::once(Some(start.clone())).chain(parts).collect()
        })
    }

    /// Returns the original's text around parts.
    fn around<'a>(&self, original: &'a str, parts: &[Range<usize>]) -> &'a str {
        let at = |byte: usize| self.places.get(byte).copied().unwrap_or(original.len());
        let first = parts.iter().map(|part| at(part.start)).min().unwrap_or_default();
        let last = parts.iter().map(|part| at(part.end)).max().unwrap_or_default();
        &original[original.floor_char_boundary(first.saturating_sub(NEAR))..original.ceil_char_boundary(last + NEAR)]
    }

    /// Returns a part as written in the original.
    fn written<'a>(&self, original: &'a str, part: Range<usize>) -> Option<&'a str> {
        original.get(*self.places.get(part.start)?..*self.places.get(part.end)?).map(str::trim_end)
    }
}

/// Returns the words of a text: letters and digits in a row.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}

/// Returns whether a phrase is in a script with blanks around words, as the Latin one.
fn is_latin(phrase: &str) -> bool {
    phrase.chars().next().is_none_or(|c| c < '\u{370}')
}

/// Returns whether a character is a sign within Indic words.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{dff}')
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

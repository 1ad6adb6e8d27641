//! The settings of a bot: their description, and what becomes of them.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Url;
use sha2::Sha256;

const DEFAULT_BASE_URL: &str = "https://api.telegram.org";

/// Every setting and secret of kind `telegram`.
pub(crate) static FIELDS: &[Field] = &[
    Field {
        name: "token",
        kind: FieldKind::Text,
        secret: true,
        required: true,
        help: "the bot's token as BotFather gave it, such as 123456789:AAF...",
    },
    setting(
        "receive",
        FieldKind::OneOf(&["polling", "webhook", "off"]),
        "how messages to the bot come in: polling (the server asks; the default), webhook (Telegram calls), off (the bot only sends)",
    ),
    setting("base_url", FieldKind::Text, "where the Bot API is; default https://api.telegram.org"),
    setting("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for an answer; default 60"),
];

const fn setting(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
}

/// How messages to the bot come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receive {
    /// By `getUpdates`.
    Polling,
    /// By calls of Telegram.
    Webhook,
    /// Not at all.
    Off,
}

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    /// The token.
    pub(crate) token: Redacted<String>,
    /// The bot's user id, with which its token begins.
    pub(crate) bot: i64,
    /// How messages come in.
    pub(crate) receive: Receive,
    /// Where the Bot API is, without a slash at its end.
    pub(crate) base_url: String,
    /// Longest wait for an answer.
    pub(crate) timeout: Duration,
    /// What Telegram proves itself with when it calls (`secret_token` of `setWebhook`). Made from the token, so that every node
    /// knows it and nobody has to keep it.
    pub(crate) webhook_secret: Redacted<String>,
}

impl Config {
    /// Reads the settings of `account`, or tells all their faults.
    pub(crate) fn read(account: &Account) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let token = settings.text("token").unwrap_or_default().to_owned();
        let bot = bot(&token);
        if bot.is_none() && !token.is_empty() {
            settings
                .fault("secrets.token", "is no bot token: digits, a colon, then letters, digits, - and _; copy it whole from BotFather");
        }
        let base_url = settings.text("base_url").unwrap_or(DEFAULT_BASE_URL).trim_end_matches('/').to_owned();
        if !is_base(&base_url) {
            settings.fault("settings.base_url", "must be an http or https URL without user, query and fragment");
        }
        let receive = match settings.text("receive") {
            Some("webhook") => Receive::Webhook,
            Some("off") => Receive::Off,
            _ => Receive::Polling,
        };
        let timeout = Duration::from_secs(settings.integer("timeout_seconds").and_then(|n| u64::try_from(n).ok()).unwrap_or(60));
        settings.finish()?;
        let webhook_secret = Redacted::new(webhook_secret(&token, &account.id.to_string()));
        // Without a bot there was a fault, which has been told.
        let Some(bot) = bot else { return Err(Vec::new()) };
        Ok(Self { token: Redacted::new(token), bot, receive, base_url, timeout, webhook_secret })
    }
}

/// The user id in a token. Tokens of other characters could change the path that they stand in.
fn bot(token: &str) -> Option<i64> {
    let (id, key) = token.split_once(':')?;
    let good = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if good { id.parse().ok().filter(|id| *id > 0) } else { None }
}

fn is_base(url: &str) -> bool {
    Url::parse(url).is_ok_and(|u| {
        let plain = u.username().is_empty() && u.password().is_none() && u.query().is_none() && u.fragment().is_none();
        plain && matches!(u.scheme(), "https" | "http") && u.has_host()
    })
}

/// 64 hexadecimal digits, which `setWebhook` allows.
fn webhook_secret(token: &str, connection: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(b"nuncio webhook ");
    mac.update(connection.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        assert_eq!(bot("123456789:AAF-x_9"), Some(123_456_789));
        for bad in ["", "123", "123:", ":abc", "x1:abc", "-1:abc", "1:a/b", "1:a?b", "1:a b", "1:a:b", "1:ñ", "99999999999999999999:a"] {
            assert_eq!(bot(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn bases() {
        for (url, good) in [
            (DEFAULT_BASE_URL, true),
            ("http://127.0.0.1:8081", true),
            ("https://proxy.example/telegram", true),
            ("ftp://x.example", false),
            ("https://u:p@x.example", false),
            ("https://x.example/?a=1", false),
            ("x.example", false),
            ("", false),
        ] {
            assert_eq!(is_base(url), good, "{url}");
        }
    }

    #[test]
    fn the_secret_of_the_webhook_fits_and_differs() {
        let secret = webhook_secret("1:a", "cnx_1");
        assert!((1..=256).contains(&secret.len()) && secret.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(secret, webhook_secret("1:b", "cnx_1"));
        assert_ne!(secret, webhook_secret("1:a", "cnx_2"));
    }
}

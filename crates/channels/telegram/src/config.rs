//! Settings of a bot.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_channel_http::mac;
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Url;
use sha2::Sha256;

const DEFAULT_BASE_URL: &str = "https://api.telegram.org";

/// Every setting and secret of kind `telegram`.
pub(crate) static FIELDS: &[Field] = &[
    Field::secret("token", "the bot's token from BotFather, such as 123456789:AAF..."),
    Field::optional(
        "receive",
        FieldKind::OneOf(&["polling", "webhook", "off"]),
        "how messages to the bot are received: polling (the server asks; the default), webhook (Telegram posts them), off (the bot only sends)",
    ),
    Field::optional("base_url", FieldKind::Text, "URL of the Bot API; default https://api.telegram.org"),
    Field::optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for a response; default 60"),
];

/// How messages to the bot are received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receive {
    /// By `getUpdates`.
    Polling,
    /// By callbacks.
    Webhook,
    Off,
}

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) token: Redacted<String>,
    /// The bot's user id, with which its token begins.
    pub(crate) bot: i64,
    pub(crate) receive: Receive,
    /// Without a slash at its end.
    pub(crate) base_url: String,
    pub(crate) timeout: Duration,
    /// The secret in Telegram's callbacks (`secret_token` of `setWebhook`). Derived from the token, so that every node knows it without
    /// storing it.
    pub(crate) webhook_secret: Redacted<String>,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(account: &Account) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let token = settings.text("token").unwrap_or_default().to_owned();
        let bot = bot(&token);
        let shape = "a bot token: digits, a colon, then letters, digits, - and _; copy the whole token from BotFather";
        settings.check_text("token", |_| bot.is_some(), shape);
        let base_url = settings.base_url("base_url", DEFAULT_BASE_URL);
        if Url::parse(&base_url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some()) {
            settings.error("base_url", "must not contain a user or password");
        }
        let receive = match settings.text("receive") {
            Some("webhook") => Receive::Webhook,
            Some("off") => Receive::Off,
            _ => Receive::Polling,
        };
        let timeout = settings.seconds("timeout_seconds", 60);
        settings.finish()?;
        let webhook_secret = Redacted::new(webhook_secret(&token, &account.id.to_string()));
        // `finish` has returned the error of a token without a bot.
        let Some(bot) = bot else { return Err(Vec::new()) };
        Ok(Self { token: Redacted::new(token), bot, receive, base_url, timeout, webhook_secret })
    }
}

/// The user id in a token. Other characters could change the path that contains the token.
fn bot(token: &str) -> Option<i64> {
    let (id, key) = token.split_once(':')?;
    let good = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if good { id.parse().ok().filter(|id| *id > 0) } else { None }
}

/// 64 hexadecimal digits, which `setWebhook` allows.
fn webhook_secret(token: &str, connection: &str) -> String {
    let mac: Hmac<Sha256> = mac(token, format!("nuncio webhook {connection}").as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::account;
    use nuncio_domain::Channel;
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens() {
        assert_eq!(bot("123456789:AAF-x_9"), Some(123_456_789));
        for bad in ["", "123", "123:", ":abc", "x1:abc", "-1:abc", "1:a/b", "1:a?b", "1:a b", "1:a:b", "1:ñ", "99999999999999999999:a"] {
            assert_eq!(bot(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn base_urls() {
        for (url, good) in [
            (DEFAULT_BASE_URL, true),
            ("http://127.0.0.1:8081", true),
            ("https://proxy.example/telegram", true),
            ("ftp://x.example", false),
            ("https://u:p@x.example", false),
            ("https://x.example/?a=1", false),
            ("x.example", false),
        ] {
            let account = account(Channel::Telegram, json!({"base_url": url}), json!({}), json!({"token": "1:a"}));
            assert_eq!(Config::read(&account).is_ok(), good, "{url}");
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

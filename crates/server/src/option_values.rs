//! Reads the values of options, so that a wrong one is reported with the command line, and help and completion name the right ones.

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use nuncio_domain::{Channel, Timestamp};
use reqwest::Url;
use serde_json::{Map, Value};

/// One of these names.
pub(crate) fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> PossibleValuesParser {
    all.iter().copied().map(name).collect::<Vec<_>>().into()
}

/// A channel, or another word that the option permits.
pub(crate) fn channel_or(word: &'static str) -> PossibleValuesParser {
    std::iter::once(word).chain(Channel::ALL.iter().map(|channel| channel.as_str())).collect::<Vec<_>>().into()
}

/// At least one.
pub(crate) fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// A time, which stays as it was written.
pub(crate) fn time(text: &str) -> Result<String, String> {
    Timestamp::parse(text).map(|_| text.to_owned()).map_err(|_| "must be a time such as 2027-01-31T09:30:00Z".to_owned())
}

/// The URL of a server.
pub(crate) fn web(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| "must be a URL such as http://127.0.0.1:8025".to_owned())
}

/// The URL of a node, without the path of the API.
pub(crate) fn node(text: &str) -> Result<Url, String> {
    let url = web(text)?;
    if url.path().trim_end_matches('/').ends_with("/v1") {
        return Err("must be the URL of the node, such as http://127.0.0.1:8025, without /v1".to_owned());
    }
    Ok(url)
}

/// A pair, which stays as it was written.
pub(crate) fn pair(text: &str) -> Result<String, String> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("must have the form name=value".to_owned()) }
}

/// A JSON object, which stays as it was written.
pub(crate) fn object(text: &str) -> Result<String, String> {
    serde_json::from_str::<Map<String, Value>>(text).map(|_| text.to_owned()).map_err(|error| format!("must be a JSON object: {error}"))
}

/// A list as one parameter of a query; `None` if it is empty.
pub(crate) fn joined(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| values.join(","))
}

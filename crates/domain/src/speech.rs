//! Chooses the words and the language of a voice message.

use std::borrow::Cow;

use crate::{address, channel::MessageType, message::Content};

/// Returns the words to speak. A location is its name and address, or its coordinates if it has neither; a link is useless when spoken. The
/// media of an `audio` message are played instead.
pub fn words<'a>(message_type: MessageType, text: Option<&'a str>, content: Option<&'a Content>) -> Cow<'a, str> {
    let text = text.filter(|text| !text.is_empty());
    let Some(place) = content.filter(|_| message_type == MessageType::Location) else {
        return Cow::Borrowed(text.unwrap_or_default());
    };
    let named = [place.location_name.as_deref(), place.location_address.as_deref()];
    let mut lines: Vec<Cow<'_, str>> = text.into_iter().chain(named.into_iter().flatten()).map(Cow::Borrowed).collect();
    if let ([None, None], Some(latitude), Some(longitude)) = (named, place.latitude, place.longitude) {
        lines.push(Cow::Owned(format!("{latitude}, {longitude}")));
    }
    Cow::Owned(lines.join("\n"))
}

/// Returns the language to speak to `to` (E.164), as a BCP 47 tag: the requested one, or the most common one of the number's country, or
/// American English.
pub fn language<'a>(asked: Option<&'a str>, to: &str) -> &'a str {
    asked.unwrap_or_else(|| of_country(&address::country(to)))
}

/// Languages of countries (ISO 3166-1 alpha-2) other than American English; the most widely understood one of each country.
const SPOKEN: &[(&str, &str)] = &[
    ("ar-SA", "AE BH DZ EG IQ JO KW LB LY MA MR OM PS QA SA SD SY TN YE"),
    ("bg-BG", "BG"),
    ("bn-BD", "BD"),
    ("ca-ES", "AD"),
    ("cs-CZ", "CZ"),
    ("da-DK", "DK FO GL"),
    ("de-AT", "AT"),
    ("de-CH", "CH LI"),
    ("de-DE", "DE"),
    ("el-GR", "CY GR"),
    ("en-AU", "AU"),
    ("en-GB", "GB GG GI IE IM JE MT"),
    ("en-IN", "IN"),
    ("en-NZ", "NZ"),
    ("en-ZA", "ZA"),
    ("es-AR", "AR UY PY"),
    ("es-ES", "ES GQ"),
    ("es-MX", "BO CL CO CR CU DO EC GT HN MX NI PA PE SV VE"),
    ("et-EE", "EE"),
    ("fa-IR", "IR"),
    ("fi-FI", "FI"),
    ("fr-BE", "BE"),
    ("fr-FR", "BF BJ BL CD CF CG CI CM DJ FR GA GF GN GP HT LU MC MF MG ML MQ NC NE PF RE SN TD TG YT"),
    ("he-IL", "IL"),
    ("hr-HR", "BA HR"),
    ("hu-HU", "HU"),
    ("hy-AM", "AM"),
    ("id-ID", "ID"),
    ("is-IS", "IS"),
    ("it-IT", "IT SM VA"),
    ("ja-JP", "JP"),
    ("ka-GE", "GE"),
    ("km-KH", "KH"),
    ("ko-KR", "KR"),
    ("lo-LA", "LA"),
    ("lt-LT", "LT"),
    ("lv-LV", "LV"),
    ("mk-MK", "MK"),
    ("ms-MY", "BN MY"),
    ("my-MM", "MM"),
    ("nb-NO", "NO SJ"),
    ("ne-NP", "NP"),
    ("nl-NL", "AW BQ CW NL SR SX"),
    ("pl-PL", "PL"),
    ("pt-BR", "BR"),
    ("pt-PT", "AO CV GW MZ PT ST TL"),
    ("ro-RO", "MD RO"),
    ("ru-RU", "BY KG KZ RU TJ"),
    ("si-LK", "LK"),
    ("sk-SK", "SK"),
    ("sl-SI", "SI"),
    ("sq-AL", "AL XK"),
    ("sr-RS", "ME RS"),
    ("sv-SE", "AX SE"),
    ("sw-KE", "KE TZ"),
    ("th-TH", "TH"),
    ("tr-TR", "TR"),
    ("uk-UA", "UA"),
    ("ur-PK", "PK"),
    ("uz-UZ", "UZ"),
    ("vi-VN", "VN"),
    ("zh-CN", "CN"),
    ("zh-HK", "HK MO"),
    ("zh-TW", "TW"),
];

fn of_country(country: &str) -> &'static str {
    let known = SPOKEN.iter().find(|(_, countries)| countries.split(' ').any(|known| known == country));
    known.map_or("en-US", |(tag, _)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_tells_the_language_unless_it_is_asked_for() {
        for (asked, to, tag) in [
            (None, "+34600111222", "es-ES"),
            (None, "+12125550100", "en-US"),
            (None, "+447700900123", "en-GB"),
            (None, "+5511912345678", "pt-BR"),
            (None, "+97150123456", "ar-SA"),
            (None, "+88213300000", "en-US"),
            (None, "", "en-US"),
            (Some("ca-ES"), "+34600111222", "ca-ES"),
        ] {
            assert_eq!(language(asked, to), tag, "{to}");
        }
    }

    #[test]
    fn no_country_has_two_languages_and_each_is_one() {
        let mut all: Vec<&str> = SPOKEN.iter().flat_map(|(_, countries)| countries.split(' ')).collect();
        assert!(all.iter().all(|country| address::is_country(country) || ["BL", "MF", "SJ", "XK"].contains(country)), "{all:?}");
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn places_are_named_and_links_are_not_read() {
        let place = Content { latitude: Some(40.5), longitude: Some(-3.25), ..Content::default() };
        let named = Content { location_name: Some("Prado".into()), location_address: Some("Madrid".into()), ..place.clone() };
        assert_eq!(words(MessageType::Location, Some("Here:"), Some(&named)), "Here:\nPrado\nMadrid");
        assert_eq!(words(MessageType::Location, None, Some(&place)), "40.5, -3.25");
        let audio = Content { media_url: Some("https://x.example/a.mp3".into()), ..Content::default() };
        assert_eq!(words(MessageType::Audio, None, Some(&audio)), "");
        assert_eq!(words(MessageType::Text, Some("Hello"), None), "Hello");
    }
}

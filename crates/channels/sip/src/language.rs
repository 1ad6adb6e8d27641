//! In which language a message is read aloud: as asked for, or the one that most people of the recipient's country understand.

use std::borrow::Cow;

use nuncio_domain::address;

/// Languages that espeak-ng 1.51 speaks under their own name.
const SPOKEN: &[&str] = &[
    "af", "am", "an", "ar", "as", "az", "ba", "be", "bg", "bn", "bs", "ca", "cmn", "cs", "cv", "cy", "da", "de", "el", "eo", "et", "eu",
    "fa", "fi", "ga", "gd", "gn", "gu", "haw", "he", "hi", "hr", "ht", "hu", "hy", "ia", "id", "is", "it", "ja", "ka", "kk", "kl", "kn",
    "ko", "kok", "ku", "ky", "la", "lb", "lt", "lv", "mi", "mk", "ml", "mr", "ms", "mt", "my", "nb", "ne", "nl", "om", "or", "pa", "pap",
    "pl", "qu", "ro", "ru", "sd", "si", "sk", "sl", "sq", "sr", "sv", "sw", "ta", "te", "th", "tk", "tn", "tr", "tt", "ug", "uk", "ur",
    "uz", "vi", "yue",
];

/// The language tag (BCP 47) for a call to `number`.
pub(crate) fn choose<'a>(asked: Option<&'a str>, number: &str, default: &'a str) -> Cow<'a, str> {
    if let Some(tag) = asked {
        return Cow::Borrowed(tag);
    }
    let country = address::country(number);
    match of_country(&country) {
        "" => Cow::Borrowed(default),
        language => Cow::Owned(format!("{language}-{country}")),
    }
}

/// The language of a country (ISO 3166-1 alpha-2); empty where English or the account's own serves as well as any.
fn of_country(country: &str) -> &'static str {
    match country {
        "AG" | "AI" | "AU" | "BB" | "BM" | "BS" | "BZ" | "CA" | "DM" | "FJ" | "FK" | "GB" | "GD" | "GG" | "GH" | "GI" | "GM" | "GU"
        | "GY" | "IE" | "IM" | "JE" | "JM" | "KN" | "KY" | "LC" | "LR" | "MS" | "NG" | "NZ" | "PG" | "PH" | "PR" | "SG" | "SL" | "TC"
        | "TT" | "US" | "VC" | "VG" | "VI" | "ZA" | "ZM" | "ZW" => "en",
        "AR" | "BO" | "CL" | "CO" | "CR" | "CU" | "DO" | "EC" | "ES" | "GQ" | "GT" | "HN" | "MX" | "NI" | "PA" | "PE" | "PY" | "SV"
        | "UY" | "VE" => "es",
        "BF" | "BI" | "BJ" | "BL" | "CD" | "CF" | "CG" | "CI" | "CM" | "DJ" | "FR" | "GA" | "GF" | "GN" | "GP" | "LU" | "MC" | "MF"
        | "MG" | "ML" | "MQ" | "NC" | "NE" | "PF" | "PM" | "RE" | "SN" | "TD" | "TG" | "WF" | "YT" => "fr",
        "AO" | "BR" | "CV" | "GW" | "MZ" | "PT" | "ST" => "pt",
        "AT" | "CH" | "DE" | "LI" => "de",
        "IT" | "SM" | "VA" => "it",
        "BE" | "NL" | "SR" | "SX" => "nl",
        "AW" | "BQ" | "CW" => "pap",
        "AE" | "BH" | "DZ" | "EG" | "EH" | "IQ" | "JO" | "KM" | "KW" | "LB" | "LY" | "MA" | "MR" | "OM" | "PS" | "QA" | "SA" | "SD"
        | "SY" | "TN" | "YE" => "ar",
        "BY" | "KG" | "KZ" | "RU" => "ru",
        "CN" | "TW" => "zh",
        "HK" | "MO" => "yue",
        "AD" => "ca",
        "AF" | "IR" => "fa",
        "AL" | "XK" => "sq",
        "AM" => "hy",
        "AX" | "SE" => "sv",
        "AZ" => "az",
        "BA" => "bs",
        "BD" => "bn",
        "BG" => "bg",
        "BN" | "MY" => "ms",
        "BW" => "tn",
        "CY" | "GR" => "el",
        "CZ" => "cs",
        "DK" | "FO" => "da",
        "EE" => "et",
        "ET" => "am",
        "FI" => "fi",
        "GE" => "ka",
        "GL" => "kl",
        "HR" => "hr",
        "HT" => "ht",
        "HU" => "hu",
        "ID" => "id",
        "IL" => "he",
        "IN" => "hi",
        "IS" => "is",
        "JP" => "ja",
        "KE" | "TZ" | "UG" => "sw",
        "KR" => "ko",
        "LK" => "si",
        "LT" => "lt",
        "LV" => "lv",
        "MD" | "RO" => "ro",
        "ME" | "RS" => "sr",
        "MK" => "mk",
        "MM" => "my",
        "MT" => "mt",
        "NO" | "SJ" => "nb",
        "NP" => "ne",
        "PK" => "ur",
        "PL" => "pl",
        "SI" => "sl",
        "SK" => "sk",
        "TH" => "th",
        "TM" => "tk",
        "TR" => "tr",
        "UA" => "uk",
        "UZ" => "uz",
        "VN" => "vi",
        _ => "",
    }
}

/// espeak-ng's voice for a language tag; nothing if it does not speak that language.
pub(crate) fn voice(tag: &str) -> Option<&'static str> {
    let tag = tag.to_ascii_lowercase();
    let (language, rest) = tag.split_once('-').unwrap_or((&tag, ""));
    let has = |region: &str| rest.split('-').any(|part| part == region);
    Some(match language {
        "en" if rest.is_empty() || has("us") || has("pr") || has("gu") || has("vi") => "en-us",
        "en" => "en-gb",
        "es" if rest.is_empty() || has("es") || has("gq") => "es",
        "es" => "es-419",
        "pt" if has("br") => "pt-br",
        "pt" => "pt",
        "fr" if has("be") => "fr-be",
        "fr" if has("ch") => "fr-ch",
        "fr" => "fr-fr",
        "zh" if has("hk") || has("mo") => "yue",
        "zh" => "cmn",
        "no" | "nn" => "nb",
        "iw" => "he",
        "in" => "id",
        other => SPOKEN.iter().find(|spoken| **spoken == other)?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_language_asked_for_or_that_of_the_country() {
        for (asked, number, tag, spoken) in [
            (None, "+34600111222", "es-ES", Some("es")),
            (None, "+525512345678", "es-MX", Some("es-419")),
            (None, "+14155552671", "en-US", Some("en-us")),
            (None, "+447400123456", "en-GB", Some("en-gb")),
            (None, "+551150000000", "pt-BR", Some("pt-br")),
            (None, "+85221234567", "yue-HK", Some("yue")),
            (None, "+861012345678", "zh-CN", Some("cmn")),
            (None, "+4721234567", "nb-NO", Some("nb")),
            (None, "+38349123456", "sq-XK", Some("sq")),
            (None, "+80012345678", "de", Some("de")), // international freephone: no country
            (Some("ca-ES"), "+34600111222", "ca-ES", Some("ca")),
            (Some("ZH-Hant-HK"), "+34600111222", "ZH-Hant-HK", Some("yue")),
            (Some("fr-CH"), "+34600111222", "fr-CH", Some("fr-ch")),
            (Some("fil-PH"), "+34600111222", "fil-PH", None),
        ] {
            let chosen = choose(asked, number, "de");
            assert_eq!((&*chosen, voice(&chosen)), (tag, spoken), "{asked:?} {number}");
        }
    }

    fn countries() -> impl Iterator<Item = String> {
        (b'A'..=b'Z').flat_map(|a| (b'A'..=b'Z').map(move |b| String::from_utf8(vec![a, b]).unwrap()))
    }

    #[test]
    fn every_language_of_a_country_has_a_voice() {
        for (country, language) in countries().map(|c| (of_country(&c), c)).filter(|(language, _)| !language.is_empty()) {
            assert!(voice(&format!("{country}-{language}")).is_some(), "{language} {country}");
        }
    }

    /// Against the program itself.
    #[test]
    #[ignore = "needs espeak-ng"]
    fn heavy_espeak_knows_every_voice() {
        let told = Command::new("espeak-ng").arg("--voices").output().expect("espeak-ng").stdout;
        let told = String::from_utf8(told).unwrap();
        let known: BTreeSet<_> = told.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        let ours = countries().filter_map(|c| voice(&format!("{}-{c}", of_country(&c)))).chain(SPOKEN.iter().copied());
        let missing: Vec<_> = ours.filter(|voice| !known.contains(voice)).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}

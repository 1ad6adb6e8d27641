//! Voices of espeak-ng.

/// Languages that espeak-ng 1.51 speaks under their own name.
const SPOKEN: &[&str] = &[
    "af", "am", "an", "ar", "as", "az", "ba", "be", "bg", "bn", "bs", "ca", "cmn", "cs", "cv", "cy", "da", "de", "el", "eo", "et", "eu",
    "fa", "fi", "ga", "gd", "gn", "gu", "haw", "he", "hi", "hr", "ht", "hu", "hy", "ia", "id", "is", "it", "ja", "ka", "kk", "kl", "kn",
    "ko", "kok", "ku", "ky", "la", "lb", "lt", "lv", "mi", "mk", "ml", "mr", "ms", "mt", "my", "nb", "ne", "nl", "om", "or", "pa", "pap",
    "pl", "qu", "ro", "ru", "sd", "si", "sk", "sl", "sq", "sr", "sv", "sw", "ta", "te", "th", "tk", "tn", "tr", "tt", "ug", "uk", "ur",
    "uz", "vi", "yue",
];

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

    const TAGS: &[(&str, Option<&str>)] = &[
        ("es-ES", Some("es")),
        ("es", Some("es")),
        ("es-MX", Some("es-419")),
        ("en-US", Some("en-us")),
        ("en-GB", Some("en-gb")),
        ("en-IN", Some("en-gb")),
        ("pt-BR", Some("pt-br")),
        ("pt-PT", Some("pt")),
        ("fr-FR", Some("fr-fr")),
        ("fr-CH", Some("fr-ch")),
        ("fr-BE", Some("fr-be")),
        ("zh-CN", Some("cmn")),
        ("ZH-Hant-HK", Some("yue")),
        ("nb-NO", Some("nb")),
        ("nn", Some("nb")),
        ("iw-IL", Some("he")),
        ("in-ID", Some("id")),
        ("ca-ES", Some("ca")),
        ("fil-PH", None),
        ("", None),
    ];

    #[test]
    fn languages_have_voices() {
        for (tag, wanted) in TAGS {
            assert_eq!(voice(tag), *wanted, "{tag}");
        }
    }

    /// Against the program itself.
    #[test]
    #[ignore = "needs espeak-ng"]
    fn heavy_espeak_knows_every_voice() {
        let told = Command::new("espeak-ng").arg("--voices").output().expect("espeak-ng; scripts/deps.sh installs it").stdout;
        let told = String::from_utf8(told).unwrap();
        let known: BTreeSet<_> = told.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        let ours = TAGS.iter().filter_map(|(_, voice)| *voice).chain(SPOKEN.iter().copied());
        let missing: Vec<_> = ours.filter(|voice| !known.contains(voice)).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}

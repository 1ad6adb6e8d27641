//! Labels of form fields by their names in the API, for errors.

/// Labels that are not made from the name.
const LABELS: &[(&str, &str)] = &[
    ("allowedCountries", "Countries it can send to"),
    ("allowedPhoneCountries", "Countries of their number"),
    ("at", "When (UTC)"),
    ("begin-current", "Your password"),
    ("body", "Text"),
    ("clientEmail", "Email address"),
    ("clientName", "Client"),
    ("columns", "Columns and their variables"),
    ("countries", "Countries of national numbers"),
    ("dailySpendLimit", "Spending limit per day"),
    ("email", "Email address"),
    ("emailHtmlBody", "HTML"),
    ("emailSubject", "Subject"),
    ("expiresInDays", "Days"),
    ("headerType", "Header"),
    ("identifier", "Number or address"),
    ("imageUrl", "Address of the new picture"),
    ("instagramBody", "Text for Instagram"),
    ("metadata", "Its value"),
    ("metadataName", "Name of your own field"),
    ("mimeType", "Type"),
    ("ofCountries", "In these countries"),
    ("other", "Address of the other contact"),
    ("recipient", "Column of the recipient"),
    ("remove-current", "Your password"),
    ("renew-current", "Your password"),
    ("sender", "From"),
    ("smsBody", "Text for SMS"),
    ("telegramBody", "Text for Telegram"),
    ("vertical", "Industry"),
    ("webhookUrl", "Address of the webhook"),
    ("why", "Reason"),
];

/// Parts of names that are abbreviations.
const ABBREVIATIONS: [&str; 17] =
    ["api", "ca", "dkim", "gsm7", "helo", "id", "ip", "mms", "npi", "sid", "smsc", "tls", "ton", "tts", "ucs2", "url", "waba"];

/// Returns the label of a field: `system_id` becomes `System ID`, `phoneNumber` `Phone number`, and `variables.name` `{{name}}`.
pub(crate) fn label(name: &str) -> String {
    if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    if let Some(variable) = name.strip_prefix("variables.") {
        return format!("{{{{{variable}}}}}");
    }
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let words = words.split('_').enumerate().map(|(at, word)| match word {
        word if ABBREVIATIONS.contains(&word) => word.to_uppercase(),
        word if at == 0 => capitalised(word),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_readable_labels() {
        let labels = ["system_id", "url", "ring_seconds", "waba_id", "phoneNumber", "clientName", "variables.city"].map(label);
        assert_eq!(labels, ["System ID", "URL", "Ring seconds", "WABA ID", "Phone number", "Client", "{{city}}"]);
    }
}

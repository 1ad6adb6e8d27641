//! Keywords by which recipients stop, resume and ask for help, and the replies.

use std::borrow::Cow;

use nuncio_channel::Wish;

/// A language: its keywords and replies, in which `{}` is the sender's name.
struct Language {
    stop: &'static [&'static str],
    start: &'static [&'static str],
    help: &'static [&'static str],
    stopped: &'static str,
    started: &'static str,
    helped: &'static str,
}

/// A keyword shared by two languages gets the reply of the first one.
const LANGUAGES: &[Language] = &[
    Language {
        stop: &["STOP", "STOPALL", "STOP ALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT", "OPT OUT"],
        start: &["START", "UNSTOP", "SUBSCRIBE", "YES", "OPTIN", "OPT IN"],
        help: &["HELP", "INFO"],
        stopped: "You are unsubscribed from {} and will get no more messages. Reply START to subscribe again.",
        started: "You are subscribed to {} again. Reply STOP to unsubscribe.",
        helped: "These messages come from {}. Reply STOP to get no more of them, START to get them again.",
    },
    Language {
        stop: &["BAJA", "ALTO", "PARAR", "DETENER", "CANCELAR", "DARME DE BAJA", "DAR DE BAJA"],
        start: &["ALTA", "INICIAR", "REANUDAR"],
        help: &["AYUDA"],
        stopped: "Te has dado de baja de {} y no vas a recibir más mensajes. Responde ALTA para volver.",
        started: "Vuelves a recibir mensajes de {}. Responde BAJA para dejar de recibirlos.",
        helped: "Estos mensajes son de {}. Responde BAJA para no recibir más, ALTA para volver a recibirlos.",
    },
    Language {
        stop: &["SAIR", "REMOVER"],
        start: &["VOLTAR", "COMEÇAR", "COMECAR"],
        help: &["AJUDA"],
        stopped: "Você saiu de {} e não vai receber mais mensagens. Responda VOLTAR para receber de novo.",
        started: "Você voltou a receber mensagens de {}. Responda SAIR para parar.",
        helped: "Estas mensagens são de {}. Responda SAIR para não receber mais, VOLTAR para receber de novo.",
    },
    Language {
        stop: &["ARRET", "ARRÊT", "ARRETE", "ARRÊTE", "ARRETEZ", "ARRÊTEZ", "ARRETER", "ARRÊTER", "DESABONNER", "DÉSABONNER"],
        start: &["REPRENDRE", "REPRISE"],
        help: &["AIDE"],
        stopped: "Vous êtes désabonné de {} et ne recevrez plus de messages. Répondez REPRENDRE pour vous réabonner.",
        started: "Vous recevez à nouveau les messages de {}. Répondez STOP pour vous désabonner.",
        helped: "Ces messages viennent de {}. Répondez STOP pour ne plus en recevoir, REPRENDRE pour en recevoir à nouveau.",
    },
    Language {
        stop: &["STOPP", "ABMELDEN", "ABBESTELLEN"],
        start: &["ANMELDEN"],
        help: &["HILFE"],
        stopped: "Du bist bei {} abgemeldet und bekommst keine Nachrichten mehr. Antworte ANMELDEN, um wieder welche zu bekommen.",
        started: "Du bekommst wieder Nachrichten von {}. Antworte STOPP, um dich abzumelden.",
        helped: "Diese Nachrichten kommen von {}. Antworte STOPP, um keine mehr zu bekommen, ANMELDEN für neue.",
    },
    Language {
        stop: &["ANNULLA", "FERMA", "CANCELLAMI"],
        start: &["INIZIA", "RIPRENDI"],
        help: &["AIUTO"],
        stopped: "Non riceverai più messaggi da {}. Rispondi INIZIA per riceverli di nuovo.",
        started: "Ricevi di nuovo i messaggi di {}. Rispondi STOP per non riceverli più.",
        helped: "Questi messaggi sono di {}. Rispondi STOP per non riceverne più, INIZIA per riceverli di nuovo.",
    },
    Language {
        stop: &["AFMELDEN", "UITSCHRIJVEN"],
        start: &["AANMELDEN"],
        help: &["HULP"],
        stopped: "Je bent afgemeld bij {} en krijgt geen berichten meer. Antwoord AANMELDEN om ze weer te krijgen.",
        started: "Je krijgt weer berichten van {}. Antwoord AFMELDEN om je af te melden.",
        helped: "Deze berichten komen van {}. Antwoord AFMELDEN om geen berichten meer te krijgen, AANMELDEN om ze weer te krijgen.",
    },
];

/// What a button can only mean to stop messages. "Cancel" cancels an order, "Info" asks about the product.
const ON_BUTTONS: &[&str] = &[
    "STOP", "STOPALL", "STOP ALL", "UNSUBSCRIBE", "OPTOUT", "OPT OUT", "BAJA", "DARME DE BAJA", "DAR DE BAJA", "SAIR", "ARRET", "ARRÊT",
    "DESABONNER", "DÉSABONNER", "STOPP", "ABMELDEN", "ABBESTELLEN", "CANCELLAMI", "AFMELDEN", "UITSCHRIJVEN",
];

/// Polite words allowed around a keyword.
const COURTESY: &[&str] = &[
    "PLEASE", "PLS", "PLZ", "THANKS", "THANK", "YOU", "THX", "POR", "FAVOR", "GRACIAS", "OBRIGADO", "OBRIGADA", "S", "IL", "VOUS", "TE",
    "PLAIT", "PLAÎT", "SVP", "MERCI", "BITTE", "DANKE", "PER", "FAVORE", "GRAZIE", "ALSJEBLIEFT", "ALSTUBLIEFT", "AUB", "DANK", "JE", "U",
    "WEL", "BEDANKT", "VERY", "MUCH", "MUCHAS", "MUITO", "BEAUCOUP", "VIELEN", "MILLE", "TANTE",
];

/// Words of the longest keyword.
const LONGEST: usize = 3;

/// Recognises a message that consists only of a keyword, regardless of case, punctuation, polite words and repetition. Returns the request
/// and the reply with the sender's name.
pub(crate) fn read(text: &str, sender: &str) -> Option<(Wish, String)> {
    let wanted = essence(text);
    LANGUAGES.iter().find_map(|language| {
        let lists = [
            (Wish::Stop, language.stop, language.stopped),
            (Wish::Start, language.start, language.started),
            (Wish::Help, language.help, language.helped),
        ];
        let (wish, _, answer) = lists.into_iter().find(|(_, words, _)| words.contains(&wanted.as_str()))?;
        Some((wish, answer.replace("{}", sender)))
    })
}

/// As [`read`] for the title of a button or row that was tapped.
pub(crate) fn read_button(title: &str, sender: &str) -> Option<(Wish, String)> {
    read(title, sender).filter(|_| ON_BUTTONS.contains(&essence(title).as_str()))
}

/// Returns a text in capitals, without punctuation, polite words and repetition.
fn essence(text: &str) -> String {
    let text: Vec<Cow<'_, str>> = text.split_whitespace().map(without_dots).collect();
    let bare =
        text.join(" ").chars().filter(|c| !is_accent(*c)).map(|c| if c.is_alphanumeric() { narrow(c) } else { ' ' }).collect::<String>();
    let upper = bare.to_uppercase();
    let mut kept: Vec<&str> = upper.split_whitespace().filter(|word| !COURTESY.contains(word)).collect();
    kept.dedup();
    if let Some(once) = (1..=LONGEST).find(|n| kept.len().is_multiple_of(*n) && kept.chunks(*n).all(|again| again == &kept[..*n])) {
        kept.truncate(once);
    }
    kept.join(" ")
}

/// Returns an abbreviation without its dots: "s.v.p." is a word.
fn without_dots(word: &str) -> Cow<'_, str> {
    let is_short = word.contains('.') && word.split('.').all(|part| part.chars().count() < 2);
    if is_short { Cow::Owned(word.replace('.', "")) } else { Cow::Borrowed(word) }
}

/// Returns whether a character is an accent of the letter before it: some phones write accented letters as two characters. Each keyword with
/// accents is also known without.
const fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns the usual form of a letter as wide as a Chinese character, which keyboards of East Asia write.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(text: &str) -> Option<Wish> {
        read(text, "Desk").map(|(wish, _)| wish)
    }

    #[test]
    fn a_button_stops_only_if_it_can_mean_nothing_else() {
        for (title, stops) in [("Stop", true), ("Stop, please", true), ("Unsubscribe", true), ("Darme de baja", true)] {
            assert_eq!(read_button(title, "Desk").is_some(), stops, "{title}");
        }
        for title in ["Cancel", "End", "Cancelar", "Yes", "Info", "Help", "Start"] {
            assert!(read(title, "Desk").is_some() && read_button(title, "Desk").is_none(), "{title}");
        }
    }

    #[test]
    fn a_word_alone_or_with_courtesy() {
        for text in [
            "stop",
            " STOP! ",
            "Stop, please.",
            "please stop",
            "stop, thanks",
            "STOP STOP STOP",
            "baja",
            "opt-out",
            "arrêt svp",
            "Stopp bitte!",
            "por favor, baja",
            "stop, s'il vous plaît",
            "\u{1F6D1} stop",
            "stop all",
            "Unsubscribe.",
            "arrêt s.v.p.",
            "STOP S.V.P.",
            "stop, thank you very much",
            "stop, muchas gracias",
            "STOP vielen Dank",
            "stop merci beaucoup",
            "stop grazie mille",
            "afmelden dank u wel",
            "afmelden a.u.b.",
            "ARRÊTE",
            "STOP ALL STOP ALL",
            "dar de baja, dar de baja",
            "S.T.O.P.",
        ] {
            assert_eq!(wish(text), Some(Wish::Stop), "{text}");
        }
        for text in ["start", "Yes", "alta", "unstop, thank you"] {
            assert_eq!(wish(text), Some(Wish::Start), "{text}");
        }
        for text in ["help", "Info", "ayuda por favor", "HILFE!"] {
            assert_eq!(wish(text), Some(Wish::Help), "{text}");
        }
    }

    #[test]
    fn a_word_in_other_characters() {
        for text in ["arre\u{302}t", "DE\u{301}SABONNER", "\u{ff33}\u{ff34}\u{ff2f}\u{ff30}", "\u{ff53}\u{ff54}\u{ff4f}\u{ff50}\u{ff01}"] {
            assert_eq!(wish(text), Some(Wish::Stop), "{text}");
        }
        let accents = |word: &&str| !word.is_ascii();
        for language in LANGUAGES {
            for words in [language.stop, language.start, language.help] {
                for word in words.iter().filter(|word| accents(word)) {
                    let plain = word.replace(['Ê', 'É'], "E").replace('Ç', "C");
                    assert!(plain.is_ascii() && words.contains(&plain.as_str()), "{word} is missing without accents");
                }
            }
        }
    }

    #[test]
    fn not_inside_a_sentence() {
        for text in [
            "don't stop", "the bus stop", "", "stopwatch", "please", "yes I will come", "no help needed", "cancel my order",
            "thank you very much", "how much to cancel", "stop. all is well", "ne t'arrête pas", "dank je wel",
        ] {
            assert_eq!(wish(text), None, "{text}");
        }
    }

    #[test]
    fn no_word_means_two_things_and_no_answer_is_a_word() {
        let mut seen = std::collections::HashMap::new();
        for (n, language) in LANGUAGES.iter().enumerate() {
            for (wish, words) in [(Wish::Stop, language.stop), (Wish::Start, language.start), (Wish::Help, language.help)] {
                for word in words {
                    assert_eq!(seen.insert(*word, (n, wish)), None, "{word}");
                    assert_eq!(read(word, "x").map(|(found, _)| found), Some(wish), "{word}");
                }
            }
            for answer in [language.stopped, language.started, language.helped] {
                assert_eq!(wish(answer), None, "an answer that is answered would go round for ever");
                assert!(answer.contains("{}"));
            }
        }
    }

    #[test]
    fn the_answer_speaks_the_language_of_the_word() {
        assert!(read("stopp", "Amt").is_some_and(|(_, answer)| answer.starts_with("Du bist bei Amt abgemeldet")));
    }
}

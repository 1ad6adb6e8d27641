//! Texts of an invitation's pages in five languages, keyed by the English phrase. `{}` is replaced by a value.

use std::cmp::Reverse;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;
use nuncio_domain::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    English,
    Spanish,
    Portuguese,
    French,
    German,
}

impl Language {
    const ALL: [Self; 5] = [Self::English, Self::Spanish, Self::Portuguese, Self::French, Self::German];

    /// Returns the supported language that the browser prefers (RFC 9110, section 12.5.4), or else English.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let asked = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut ranges: Vec<_> = asked.split(',').filter_map(Self::range).collect();
        ranges.sort_by_key(|(weight, _)| Reverse(*weight));
        ranges.first().map_or(Self::English, |(_, language)| *language)
    }

    /// Parses a range such as `pt-BR;q=0.8` with its weight in thousandths; `None` if the language is unsupported or excluded.
    fn range(text: &str) -> Option<(u16, Self)> {
        let (tag, weight) = text.split_once(';').map_or((text, None), |(tag, weight)| (tag, Some(weight)));
        let weight = weight.and_then(|weight| weight.trim().strip_prefix("q=")).map_or(Some(1.0), |weight| weight.parse::<f32>().ok())?;
        let primary = tag.trim().split('-').next()?;
        let language = Self::ALL.into_iter().find(|language| primary.eq_ignore_ascii_case(language.tag()))?;
        (weight > 0.0).then_some(((weight.min(1.0) * 1000.0) as u16, language))
    }

    /// Returns the language tag for `lang` (RFC 5646).
    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
            Self::Portuguese => "pt",
            Self::French => "fr",
            Self::German => "de",
        }
    }

    /// Translates a phrase of [`PHRASES`].
    pub(super) fn say(self, english: &'static str) -> &'static str {
        let phrase = PHRASES.iter().find(|phrase| phrase[0] == english);
        debug_assert!(phrase.is_some(), "no translation of {english:?}");
        phrase.map_or(english, |phrase| phrase[self as usize])
    }

    /// Translates a phrase and inserts the value.
    pub(super) fn with(self, english: &'static str, value: &str) -> String {
        self.say(english).replacen("{}", value, 1)
    }

    /// Returns the translation before and after the value.
    pub(super) fn around(self, english: &'static str) -> (&'static str, &'static str) {
        self.say(english).split_once("{}").unwrap_or_default()
    }

    /// Formats a date and time, such as `2 December 2026, 00:33 UTC`.
    pub(super) fn date(self, at: Timestamp) -> String {
        let text = at.to_string();
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let number = |from, to| part(from, to).parse::<usize>().unwrap_or_default();
        let (year, day) = (part(0, 4), number(8, 10));
        let month = MONTHS.get(number(5, 7).wrapping_sub(1)).map_or("", |names| names[self as usize]);
        let date = match self {
            Self::English => format!("{day} {month} {year}"),
            Self::Spanish | Self::Portuguese => format!("{day} de {month} de {year}"),
            Self::French if day == 1 => format!("1er {month} {year}"),
            Self::French => format!("{day} {month} {year}"),
            Self::German => format!("{day}. {month} {year}"),
        };
        format!("{date}, {} UTC", part(11, 16))
    }

    /// Translates an English sentence that already contains its value.
    pub(super) fn translated(self, sentence: &str) -> String {
        let found = PHRASES.iter().find_map(|phrase| Some((phrase, value(phrase[0], sentence)?)));
        debug_assert!(found.is_some(), "no translation of {sentence:?}");
        found.map_or_else(|| sentence.to_owned(), |(phrase, value)| phrase[self as usize].replacen("{}", value, 1))
    }
}

/// Returns the part of the sentence that `{}` stands for; `""` for a phrase without one.
fn value<'a>(english: &str, sentence: &'a str) -> Option<&'a str> {
    match english.split_once("{}") {
        Some((before, after)) => sentence.strip_prefix(before)?.strip_suffix(after),
        None => (english == sentence).then_some(""),
    }
}

/// Months in English, Spanish, Portuguese, French, German.
const MONTHS: [[&str; 5]; 12] = [
    ["January", "enero", "janeiro", "janvier", "Januar"],
    ["February", "febrero", "fevereiro", "février", "Februar"],
    ["March", "marzo", "março", "mars", "März"],
    ["April", "abril", "abril", "avril", "April"],
    ["May", "mayo", "maio", "mai", "Mai"],
    ["June", "junio", "junho", "juin", "Juni"],
    ["July", "julio", "julho", "juillet", "Juli"],
    ["August", "agosto", "agosto", "août", "August"],
    ["September", "septiembre", "setembro", "septembre", "September"],
    ["October", "octubre", "outubro", "octobre", "Oktober"],
    ["November", "noviembre", "novembro", "novembre", "November"],
    ["December", "diciembre", "dezembro", "décembre", "Dezember"],
];

/// English, Spanish, Portuguese, French, German.
const PHRASES: &[[&str; 5]] = &[
    ["Error: ", "Error: ", "Erro: ", "Erreur : ", "Fehler: "],
    ["{} invites you", "{} le invita", "{} convida você", "{} vous invite", "{} lädt Sie ein"],
    ["Your details", "Sus datos", "Seus dados", "Vos coordonnées", "Ihre Angaben"],
    ["Enter the code", "Introduzca el código", "Digite o código", "Saisissez le code", "Code eingeben"],
    ["Check and agree", "Revise y acepte", "Confira e aceite", "Vérifiez et acceptez", "Prüfen und zustimmen"],
    ["You are done", "Ya está todo", "Tudo pronto", "C’est terminé", "Fertig"],
    [
        "{} can send messages in your name from now on. You can close this page.",
        "A partir de ahora, {} puede enviar mensajes en su nombre. Puede cerrar esta página.",
        "A partir de agora, {} pode enviar mensagens em seu nome. Você pode fechar esta página.",
        "{} peut désormais envoyer des messages en votre nom. Vous pouvez fermer cette page.",
        "{} kann ab jetzt Nachrichten in Ihrem Namen senden. Sie können diese Seite schließen.",
    ],
    [
        "This invitation has expired",
        "Esta invitación ha caducado",
        "Este convite expirou",
        "Cette invitation a expiré",
        "Diese Einladung ist abgelaufen",
    ],
    ["Ask {} for a new one.", "Pida otra a {}.", "Peça outro a {}.", "Demandez-en une autre à {}.", "Bitten Sie {} um eine neue."],
    [
        "This invitation was withdrawn",
        "Esta invitación fue retirada",
        "Este convite foi retirado",
        "Cette invitation a été retirée",
        "Diese Einladung wurde zurückgezogen",
    ],
    [
        "If you did not expect that, ask {}.",
        "Si no lo esperaba, pregunte a {}.",
        "Se você não esperava por isso, pergunte a {}.",
        "Si vous ne vous y attendiez pas, demandez à {}.",
        "Wenn Sie das nicht erwartet haben, fragen Sie {}.",
    ],
    [
        "This is a test. No message leaves the sandbox, and nothing costs money.",
        "Esto es una prueba. Ningún mensaje sale del entorno de pruebas y nada cuesta dinero.",
        "Este é um teste. Nenhuma mensagem sai do ambiente de testes e nada custa dinheiro.",
        "Ceci est un test. Aucun message ne quitte l’environnement de test et rien n’est facturé.",
        "Das ist ein Test. Keine Nachricht verlässt die Testumgebung, und nichts kostet Geld.",
    ],
    [
        "The code is in the text of the message, which the API shows to a test key.",
        "El código está en el texto del mensaje, tal como la API lo muestra a una clave de prueba.",
        "O código está no texto da mensagem, como a API o mostra a uma chave de teste.",
        "Le code figure dans le texte du message, tel que l’API le montre à une clé de test.",
        "Der Code steht im Text der Nachricht, wie die API ihn einem Testschlüssel zeigt.",
    ],
    [
        "{} wants to send messages in your name. To set that up, you enter a name and an email address. It takes two minutes.",
        "{} desea enviar mensajes en su nombre. Para ello, indique un nombre y una dirección de correo. Son dos minutos.",
        "{} deseja enviar mensagens em seu nome. Para isso, informe um nome e um endereço de e-mail. Leva dois minutos.",
        "{} souhaite envoyer des messages en votre nom. Il suffit d’indiquer un nom et une adresse e-mail. Cela prend deux minutes.",
        "{} möchte Nachrichten in Ihrem Namen senden. Dafür geben Sie einen Namen und eine E-Mail-Adresse an. Es dauert zwei Minuten.",
    ],
    [
        "{} wants to send messages in your name. To set that up, you enter a name and an email address, and verify your phone number with a \
         code that we send to it. It takes two minutes.",
        "{} desea enviar mensajes en su nombre. Para ello, indique un nombre y una dirección de correo, y confirme su número de teléfono \
         con un código que le enviaremos. Son dos minutos.",
        "{} deseja enviar mensagens em seu nome. Para isso, informe um nome e um endereço de e-mail e confirme seu número de telefone com \
         um código que enviaremos. Leva dois minutos.",
        "{} souhaite envoyer des messages en votre nom. Il suffit d’indiquer un nom et une adresse e-mail, puis de confirmer votre numéro \
         de téléphone avec un code que nous lui envoyons. Cela prend deux minutes.",
        "{} möchte Nachrichten in Ihrem Namen senden. Dafür geben Sie einen Namen und eine E-Mail-Adresse an und bestätigen Ihre \
         Telefonnummer mit einem Code, den wir Ihnen senden. Es dauert zwei Minuten.",
    ],
    [
        "The invitation is valid until {}.",
        "La invitación es válida hasta el {}.",
        "O convite é válido até {}.",
        "L’invitation est valable jusqu’au {}.",
        "Die Einladung gilt bis {}.",
    ],
    ["Begin", "Empezar", "Começar", "Commencer", "Beginnen"],
    ["Continue", "Continuar", "Continuar", "Continuer", "Weiter"],
    ["Finish", "Terminar", "Concluir", "Terminer", "Abschließen"],
    ["Change", "Cambiar", "Alterar", "Modifier", "Ändern"],
    ["Step {} of {}", "Paso {} de {}", "Passo {} de {}", "Étape {} sur {}", "Schritt {} von {}"],
    ["Name", "Nombre", "Nome", "Nom", "Name"],
    [
        "The company or person that messages come from.",
        "La empresa o persona que envía los mensajes.",
        "A empresa ou pessoa que envia as mensagens.",
        "L’entreprise ou la personne qui envoie les messages.",
        "Das Unternehmen oder die Person, von der die Nachrichten kommen.",
    ],
    ["Email address", "Dirección de correo", "Endereço de e-mail", "Adresse e-mail", "E-Mail-Adresse"],
    [
        "Where we can reach you about this.",
        "Donde podamos contactarle sobre esto.",
        "Onde podemos falar com você sobre isto.",
        "Où nous pouvons vous joindre à ce sujet.",
        "Wo wir Sie dazu erreichen.",
    ],
    ["Phone number", "Número de teléfono", "Número de telefone", "Numéro de téléphone", "Telefonnummer"],
    [
        "You will use the phone number {}, which is reserved for you.",
        "Usará el número de teléfono {}, reservado para usted.",
        "Você usará o número de telefone {}, reservado para você.",
        "Vous utiliserez le numéro de téléphone {}, qui vous a été réservé.",
        "Sie verwenden die Telefonnummer {}, die für Sie bereitsteht.",
    ],
    [
        "With its country code, such as +34 600 111 222. We send a code to it.",
        "Con el prefijo del país, por ejemplo +34 600 111 222. Le enviaremos un código.",
        "Com o código do país, por exemplo +34 600 111 222. Enviaremos um código para ele.",
        "Avec l’indicatif du pays, par exemple +34 600 111 222. Nous lui envoyons un code.",
        "Mit Landesvorwahl, zum Beispiel +34 600 111 222. Wir senden einen Code dorthin.",
    ],
    ["Countries: {}.", "Países: {}.", "Países: {}.", "Pays : {}.", "Länder: {}."],
    ["Code", "Código", "Código", "Code", "Code"],
    [
        "The six digits of the message that we sent to {}.",
        "Las seis cifras del mensaje que enviamos a {}.",
        "Os seis dígitos da mensagem que enviamos para {}.",
        "Les six chiffres du message que nous avons envoyé au {}.",
        "Die sechs Ziffern aus der Nachricht, die wir an {} gesendet haben.",
    ],
    [
        "No message? Wait a moment, then request another code.",
        "¿No llegó ningún mensaje? Espere un momento y pida otro código.",
        "Não chegou nenhuma mensagem? Espere um momento e peça outro código.",
        "Aucun message reçu ? Patientez un instant, puis demandez un autre code.",
        "Keine Nachricht bekommen? Warten Sie einen Moment und fordern Sie dann einen neuen Code an.",
    ],
    ["Send another code", "Enviar otro código", "Enviar outro código", "Envoyer un autre code", "Neuen Code senden"],
    [
        "A new code was sent.",
        "Se envió un código nuevo.",
        "Foi enviado um código novo.",
        "Un nouveau code a été envoyé.",
        "Ein neuer Code wurde gesendet.",
    ],
    [
        "It was the last one within an hour.",
        "Era el último en una hora.",
        "Era o último em uma hora.",
        "C’était le dernier en une heure.",
        "Es war der letzte innerhalb einer Stunde.",
    ],
    [
        "One more can be sent within an hour.",
        "Se puede enviar uno más en una hora.",
        "Mais um pode ser enviado em uma hora.",
        "Un autre peut encore être envoyé en une heure.",
        "Innerhalb einer Stunde kann noch einer gesendet werden.",
    ],
    [
        "{} more can be sent within an hour.",
        "Se pueden enviar {} más en una hora.",
        "Mais {} podem ser enviados em uma hora.",
        "{} autres peuvent encore être envoyés en une heure.",
        "Innerhalb einer Stunde können noch {} gesendet werden.",
    ],
    [
        "Change the phone number",
        "Cambiar el número de teléfono",
        "Alterar o número de telefone",
        "Modifier le numéro de téléphone",
        "Telefonnummer ändern",
    ],
    [
        "I agree that {} sends and receives messages in this name and with this number.",
        "Acepto que {} envíe y reciba mensajes con este nombre y este número.",
        "Aceito que {} envie e receba mensagens com este nome e este número.",
        "J’accepte que {} envoie et reçoive des messages sous ce nom et avec ce numéro.",
        "Ich stimme zu, dass {} unter diesem Namen und mit dieser Nummer Nachrichten sendet und empfängt.",
    ],
    // Errors.
    [
        "Too many codes were sent. Try again in one minute.",
        "Se enviaron demasiados códigos. Inténtelo de nuevo en un minuto.",
        "Foram enviados códigos demais. Tente de novo em um minuto.",
        "Trop de codes ont été envoyés. Réessayez dans une minute.",
        "Es wurden zu viele Codes gesendet. Versuchen Sie es in einer Minute noch einmal.",
    ],
    [
        "Too many codes were sent. Try again in {} minutes.",
        "Se enviaron demasiados códigos. Inténtelo de nuevo en {} minutos.",
        "Foram enviados códigos demais. Tente de novo em {} minutos.",
        "Trop de codes ont été envoyés. Réessayez dans {} minutes.",
        "Es wurden zu viele Codes gesendet. Versuchen Sie es in {} Minuten noch einmal.",
    ],
    [
        "We could not send a code to this number. Try another number, or contact the person who invited you.",
        "No pudimos enviar un código a este número. Pruebe con otro o pregunte a quien le invitó.",
        "Não conseguimos enviar um código para este número. Tente outro ou pergunte a quem convidou você.",
        "Nous n’avons pas pu envoyer de code à ce numéro. Essayez-en un autre, ou demandez à qui vous a invité.",
        "Wir konnten keinen Code an diese Nummer senden. Versuchen Sie eine andere, oder fragen Sie, wer Sie eingeladen hat.",
    ],
    ["Enter the code.", "Introduzca el código.", "Digite o código.", "Saisissez le code.", "Geben Sie den Code ein."],
    [
        "The code has six digits.",
        "El código tiene seis cifras.",
        "O código tem seis dígitos.",
        "Le code comporte six chiffres.",
        "Der Code hat sechs Ziffern.",
    ],
    [
        "There is no code yet. Request one below.",
        "Aún no hay ningún código. Pídalo más abajo.",
        "Ainda não há código. Peça um abaixo.",
        "Il n’y a pas encore de code. Demandez-en un ci-dessous.",
        "Es gibt noch keinen Code. Fordern Sie unten einen an.",
    ],
    [
        "Too many wrong codes. Request a new one below.",
        "Hubo demasiados intentos fallidos. Pida un código nuevo más abajo.",
        "Houve tentativas erradas demais. Peça um código novo abaixo.",
        "Il y a eu trop d’essais erronés. Demandez un nouveau code ci-dessous.",
        "Es gab zu viele falsche Versuche. Fordern Sie unten einen neuen Code an.",
    ],
    [
        "The code has expired. Request a new one below.",
        "El código ha caducado. Pida uno nuevo más abajo.",
        "O código expirou. Peça um novo abaixo.",
        "Le code est trop ancien. Demandez-en un nouveau ci-dessous.",
        "Der Code ist zu alt. Fordern Sie unten einen neuen an.",
    ],
    [
        "The code is wrong, and this was the last try. Request a new one below.",
        "El código no es correcto y era el último intento. Pida uno nuevo más abajo.",
        "O código não está certo, e era a última tentativa. Peça um novo abaixo.",
        "Ce n’est pas le bon code, et c’était le dernier essai. Demandez-en un nouveau ci-dessous.",
        "Das ist nicht der Code, und es war der letzte Versuch. Fordern Sie unten einen neuen an.",
    ],
    [
        "The code is wrong. One try left.",
        "El código no es correcto. Queda un intento.",
        "O código não está certo. Resta uma tentativa.",
        "Ce n’est pas le bon code. Encore un essai.",
        "Das ist nicht der Code. Noch ein Versuch.",
    ],
    [
        "The code is wrong. {} tries left.",
        "El código no es correcto. Quedan {} intentos.",
        "O código não está certo. Restam {} tentativas.",
        "Ce n’est pas le bon code. Encore {} essais.",
        "Das ist nicht der Code. Noch {} Versuche.",
    ],
    [
        "Tick the box to continue.",
        "Marque la casilla para continuar.",
        "Marque a caixa para continuar.",
        "Cochez la case pour continuer.",
        "Setzen Sie das Häkchen, um fortzufahren.",
    ],
    [
        "The number reserved for you is not available at the moment. Contact the person who invited you.",
        "El número reservado para usted no se puede usar en este momento. Pregunte a quien le invitó.",
        "O número reservado para você não pode ser usado no momento. Pergunte a quem convidou você.",
        "Le numéro qui vous est réservé ne peut pas être utilisé pour le moment. Demandez à qui vous a invité.",
        "Die für Sie vorgesehene Nummer ist zurzeit nicht verwendbar. Fragen Sie, wer Sie eingeladen hat.",
    ],
    ["Enter a name.", "Introduzca un nombre.", "Digite um nome.", "Saisissez un nom.", "Geben Sie einen Namen ein."],
    [
        "Enter a name of at most {} characters, on one line.",
        "Introduzca un nombre de como máximo {} caracteres, en una línea.",
        "Digite um nome de no máximo {} caracteres, em uma linha.",
        "Saisissez un nom de {} caractères au plus, sur une ligne.",
        "Geben Sie einen Namen mit höchstens {} Zeichen in einer Zeile ein.",
    ],
    [
        "Enter an email address such as name@example.org.",
        "Introduzca una dirección de correo como nombre@example.org.",
        "Digite um endereço de e-mail como nome@example.org.",
        "Saisissez une adresse e-mail comme nom@example.org.",
        "Geben Sie eine E-Mail-Adresse wie name@example.org ein.",
    ],
    [
        "Enter a phone number with its country code, such as +34 600 111 222.",
        "Introduzca un número de teléfono con el prefijo del país, por ejemplo +34 600 111 222.",
        "Digite um número de telefone com o código do país, por exemplo +34 600 111 222.",
        "Saisissez un numéro de téléphone avec l’indicatif du pays, par exemple +34 600 111 222.",
        "Geben Sie eine Telefonnummer mit Landesvorwahl ein, zum Beispiel +34 600 111 222.",
    ],
    [
        "The number must be from one of these countries: {}.",
        "El número debe ser de uno de estos países: {}.",
        "O número deve ser de um destes países: {}.",
        "Le numéro doit être de l’un de ces pays : {}.",
        "Die Nummer muss aus einem dieser Länder sein: {}.",
    ],
    [
        "Another sender already has this number.",
        "Otro remitente ya tiene este número.",
        "Outro remetente já tem este número.",
        "Un autre expéditeur a déjà ce numéro.",
        "Ein anderer Absender hat diese Nummer schon.",
    ],
    // Without an invitation.
    [
        "There is no such invitation",
        "Esta invitación no existe",
        "Este convite não existe",
        "Cette invitation n’existe pas",
        "Diese Einladung gibt es nicht",
    ],
    [
        "Check that the whole link was copied. If it was, contact the person who sent it to you.",
        "Compruebe que copió el enlace completo. Si es así, pregunte a quien se lo envió.",
        "Verifique se copiou o link inteiro. Se copiou, pergunte a quem o enviou.",
        "Vérifiez que le lien a été copié en entier. Si c’est le cas, demandez à qui vous l’a envoyé.",
        "Prüfen Sie, ob der ganze Link kopiert wurde. Wenn ja, fragen Sie, wer ihn geschickt hat.",
    ],
    ["Too many attempts", "Demasiados intentos", "Tentativas demais", "Trop d’essais", "Zu viele Versuche"],
    [
        "Wait a minute, then open the link again.",
        "Espere un minuto y vuelva a abrir el enlace.",
        "Espere um minuto e abra o link de novo.",
        "Patientez une minute, puis rouvrez le lien.",
        "Warten Sie eine Minute und öffnen Sie den Link noch einmal.",
    ],
    [
        "The form could not be read",
        "No se pudo leer el formulario",
        "Não foi possível ler o formulário",
        "Le formulaire n’a pas pu être lu",
        "Das Formular konnte nicht gelesen werden",
    ],
    [
        "Open the link of your invitation again, and fill in the form there.",
        "Abra de nuevo el enlace de su invitación y rellene allí el formulario.",
        "Abra de novo o link do seu convite e preencha o formulário lá.",
        "Rouvrez le lien de votre invitation et remplissez-y le formulaire.",
        "Öffnen Sie den Link Ihrer Einladung noch einmal und füllen Sie das Formular dort aus.",
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_in_each_language() {
        let at = Timestamp::parse("2026-12-02T00:33:10Z").expect("a time");
        let expected = [
            "2 December 2026, 00:33 UTC",
            "2 de diciembre de 2026, 00:33 UTC",
            "2 de dezembro de 2026, 00:33 UTC",
            "2 décembre 2026, 00:33 UTC",
            "2. Dezember 2026, 00:33 UTC",
        ];
        assert_eq!(Language::ALL.map(|language| language.date(at)), expected);
        let first = Timestamp::parse("2026-08-01T09:05:00Z").expect("a time");
        assert_eq!(Language::French.date(first), "1er août 2026, 09:05 UTC");
    }
}

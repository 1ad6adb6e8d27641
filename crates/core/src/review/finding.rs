//! What a review finds in texts.

/// What a text offends against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Category {
    /// A link that pretends to be somebody else's.
    Phishing,
    /// Asks for passwords, codes or payment data.
    Credentials,
    /// Goods that no provider carries.
    Forbidden,
    /// Hate, or a threat.
    Hate,
    /// A link that hides where it leads.
    ShortLink,
    /// A link below a top-level domain that fraud prefers.
    CheapLink,
    /// A story that fraud tells.
    Lure,
    /// A further part of a story: shown, not counted.
    Part,
    /// Sexual offers.
    Adult,
    /// Games of chance.
    Gambling,
    /// Numbers that cost more than a call or a message.
    Premium,
    /// Looks like spam.
    Spam,
    /// Offers something and does not say who speaks.
    Anonymous,
    /// A word of the project's own list.
    Blocked,
    /// Offers something and does not say how to get no more of it.
    NoWayOut,
}

/// One finding: what, and the words that it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding(pub(super) Category, pub(super) String);

/// A category as a sentence names it.
pub(super) const fn words_for(category: Category) -> &'static str {
    match category {
        Category::Phishing => "links that pretend to lead elsewhere",
        Category::Credentials => "requests for passwords, codes or payment data",
        Category::Forbidden => "goods or services that may not be offered",
        Category::Hate => "hateful or threatening words",
        Category::ShortLink => "links that hide where they lead",
        Category::CheapLink => "links below domains that fraud prefers",
        Category::Lure | Category::Part => "a story that fraud tells",
        Category::Adult => "sexual offers",
        Category::Gambling => "games of chance",
        Category::Premium => "numbers or messages at a premium rate",
        Category::Spam => "signs of spam",
        Category::Anonymous => "an offer that does not say who makes it",
        Category::Blocked => "words that the operator has blocked",
        Category::NoWayOut => "an offer that does not say how to opt out",
    }
}

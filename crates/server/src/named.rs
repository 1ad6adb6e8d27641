//! Finds what a person named on the command line, by ID or by name; and names projects in commands.

use nuncio_domain::ProjectId;
use nuncio_domain::config::Project;

/// What a text names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Named<T> {
    One(T),
    None,
    /// Several have this name; the text lists their IDs.
    Several(String),
}

/// Finds the item that `text` names. A text that `is_id` is never a name: a name cannot hide the item with that ID. A name that several
/// items have decides nothing.
pub(crate) fn named<T>(items: impl IntoIterator<Item = T>, text: &str, is_id: bool, of: impl Fn(&T) -> (String, String)) -> Named<T> {
    let is_meant = |item: &T| {
        let (id, name) = of(item);
        if is_id { id == text } else { name == text }
    };
    let mut found: Vec<T> = items.into_iter().filter(is_meant).collect();
    match (found.pop(), found.as_slice()) {
        (None, _) => Named::None,
        (Some(one), []) => Named::One(one),
        (Some(last), others) => {
            let ids: Vec<String> = others.iter().chain([&last]).map(|item| of(item).0).collect();
            Named::Several(format!("{} have the name {text:?}: {}; use the ID of one", ids.len(), ids.join(", ")))
        }
    }
}

/// The option that names a project in a command; empty for the oldest, which needs none.
pub(crate) fn project_option(projects: &[Project], project: &Project) -> String {
    if projects.first().is_none_or(|oldest| oldest.id == project.id) {
        return String::new();
    }
    let is_plain = project.name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && project.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && projects.iter().filter(|other| other.name == project.name).count() == 1
        && project.name.parse::<ProjectId>().is_err();
    if is_plain { format!(" --project {}", project.name) } else { format!(" --project {}", project.id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Named<(&'static str, &'static str)> {
        let items = [("id_1", "Desk"), ("id_2", "id_1"), ("id_3", "Shop"), ("id_4", "Shop")];
        named(items, text, text.starts_with("id_"), |(id, name)| ((*id).to_owned(), (*name).to_owned()))
    }

    #[test]
    fn a_name_does_not_hide_an_id_and_equal_names_decide_nothing() {
        assert_eq!(find("Desk"), Named::One(("id_1", "Desk")));
        assert_eq!(find("id_1"), Named::One(("id_1", "Desk")), "not the one of this name");
        assert_eq!(find("id_9"), Named::None);
        assert_eq!(find("Nobody"), Named::None);
        assert_eq!(find("Shop"), Named::Several("2 have the name \"Shop\": id_3, id_4; use the ID of one".to_owned()));
    }
}

use super::*;

fn entry(inode: u32, name: &str) -> Entry<'_> {
    Entry {
        inode,
        name: name.as_bytes(),
        is_directory: inode < 100,
    }
}

fn text(names: &mut Names, inode: u32) -> Option<String> {
    let mut paths = Paths::default();
    names.known.clear();
    names
        .path(inode, &mut paths)
        .map(|p| paths.text(p).to_owned())
}

#[test]
fn a_path_follows_renames_and_outlives_removal() {
    let mut names = Names::default();
    names.add(ROOT, &entry(12, "d"));
    names.add(12, &entry(100, "f"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/d/f"));
    names.add(ROOT, &entry(12, "e"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/d/f"));
    names.remove(ROOT, &entry(12, "d"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/e/f"));
    names.remove(12, &entry(100, "f"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/e/f"));
    names.inode_removed(100);
    names.add(ROOT, &entry(100, "new"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
    assert_eq!(text(&mut names, ROOT).as_deref(), Some("/"));
    assert_eq!(text(&mut names, 777), None);
}

#[test]
fn a_new_file_is_not_called_as_the_one_whose_number_it_has() {
    let mut names = Names::default();
    names.inode_new(100);
    names.add(ROOT, &entry(100, "old"));
    let old = names.life(100);
    names.inode_removed(100);
    assert_eq!(text(&mut names, 100).as_deref(), Some("/old"));
    names.inode_new(100);
    assert_eq!(text(&mut names, 100), None);
    let new = names.life(100);
    names.add(ROOT, &entry(100, "new"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
    assert_eq!(names.life(100), new);
    assert_ne!(old, new);
    // The old file's entry is removed last.
    names.remove(ROOT, &entry(100, "old"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
}

#[test]
fn a_file_without_a_name_has_neither_that_of_before_nor_that_of_after() {
    let mut names = Names::default();
    names.inode_new(100);
    names.add(ROOT, &entry(100, "old"));
    names.inode_removed(100);
    names.inode_new(100);
    names.inode_nameless(100);
    let nameless = names.life(100);
    names.remove(ROOT, &entry(100, "old"));
    names.settle();
    assert_eq!(text(&mut names, 100), None);
    names.add(ROOT, &entry(100, "new"));
    assert_ne!(names.life(100), nameless);
}

#[test]
fn a_new_file_that_no_directory_names_has_no_path() {
    let mut names = Names::default();
    names.inode_new(100);
    names.add(ROOT, &entry(100, "old"));
    names.inode_removed(100);
    names.inode_new(100);
    names.remove(ROOT, &entry(100, "old"));
    names.settle();
    assert_eq!(text(&mut names, 100), None);
}

#[test]
fn no_path_leads_through_another_file_with_the_number_of_a_removed_directory() {
    let mut names = Names::default();
    names.inode_is(12, 1, true, true);
    names.inode_new(12);
    names.add(ROOT, &entry(12, "d"));
    names.add(12, &entry(100, "open"));
    names.remove(12, &entry(100, "open"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/d/open"));
    // A fast commit tells of the next file first.
    names.told_generation(12, 2);
    let file = Entry {
        is_directory: false,
        ..entry(12, "file")
    };
    names.told(ROOT, &file);
    assert_eq!(text(&mut names, 12).as_deref(), Some("/file"));
    assert_eq!(text(&mut names, 100), None);
    names.settle();
    assert_eq!(text(&mut names, 100).as_deref(), Some("/d/open"));
    names.inode_removed(12);
    names.inode_new(12);
    names.inode_is(12, 2, true, false);
    names.add(ROOT, &file);
    assert_eq!(text(&mut names, 12).as_deref(), Some("/file"));
    assert_eq!(text(&mut names, 100), None);
    // The next one is a directory.
    names.inode_new(12);
    names.inode_is(12, 3, true, true);
    names.add(ROOT, &entry(12, "e"));
    assert_eq!(text(&mut names, 100), None);
}

#[test]
fn a_name_may_come_before_its_inode() {
    let mut names = Names::default();
    names.inode_new(100);
    names.add(ROOT, &entry(100, "old"));
    let old = names.life(100);
    names.add(ROOT, &entry(100, "new"));
    names.inode_removed(100);
    names.inode_new(100);
    names.remove(ROOT, &entry(100, "old"));
    assert_eq!(text(&mut names, 100), None);
    names.settle();
    assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
    assert_ne!(names.life(100), old);
    // A name that moves is removed before it is added.
    let before = names.life(100);
    names.remove(ROOT, &entry(100, "new"));
    names.add(ROOT, &entry(100, "new"));
    assert_eq!(names.life(100), before);
    // The file is removed, and the next file's name appears before its inode.
    names.inode_removed(100);
    names.add(ROOT, &entry(100, "next"));
    assert_ne!(names.life(100), before);
}

#[test]
fn the_oldest_name_counts_while_it_lasts() {
    let mut names = Names::default();
    names.add(ROOT, &entry(100, "first"));
    names.add(ROOT, &entry(100, "second"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/first"));
    // A block is split: the name is in the new block before it is removed from the old one.
    names.add(ROOT, &entry(100, "first"));
    names.remove(ROOT, &entry(100, "first"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/first"));
    names.remove(ROOT, &entry(100, "first"));
    assert_eq!(text(&mut names, 100).as_deref(), Some("/second"));
}

#[test]
fn a_loop_of_directories_has_no_path() {
    let mut names = Names::default();
    names.add(12, &entry(13, "a"));
    names.add(13, &entry(12, "b"));
    assert_eq!(text(&mut names, 12), None);
}

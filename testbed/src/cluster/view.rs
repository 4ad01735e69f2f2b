//! The nodes of a cluster as one of them reports them (`CLUSTER NODES`).

/// A node of a cluster, as another node or the node itself knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KnownNode {
    pub(crate) id: String,
    pub(crate) port: u16,
    flags: Vec<String>,
    /// The id of the primary that the node follows.
    pub(crate) follows: Option<String>,
    epoch: u64,
    pub(crate) is_linked: bool,
    /// Ranges of slots. A slot that is being moved is in brackets.
    slots: Vec<String>,
}

/// What all nodes of a cluster must agree on: for each primary and replica its port, its slots with their epoch, and
/// the port of the primary that it follows.
pub(crate) type Layout = Vec<(u16, Vec<String>, u64, Option<u16>)>;

/// Reads the answer to `CLUSTER NODES`. Lines of another form are left out.
pub(crate) fn parse(text: &str) -> Vec<KnownNode> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<KnownNode> {
    let mut words = line.split(' ');
    let (id, place, flags, follows) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (_, _, epoch, link) = (words.next()?, words.next()?, words.next()?, words.next()?);
    // host:port@bus, and from Redis 7.0 on a comma with the name of the host.
    let place = place.split(',').next()?;
    let (place, _) = place.split_once('@')?;
    Some(KnownNode {
        id: id.to_owned(),
        port: place.rsplit(':').next()?.parse().ok()?,
        flags: flags.split(',').map(str::to_owned).collect(),
        follows: Some(follows.to_owned()).filter(|id| id != "-"),
        epoch: epoch.parse().ok()?,
        is_linked: link == "connected",
        slots: words.map(str::to_owned).collect(),
    })
}

/// Returns the node that has reported these nodes.
pub(crate) fn reporter(nodes: &[KnownNode]) -> Option<&KnownNode> {
    nodes.iter().find(|node| node.has("myself"))
}

/// Returns what all nodes of the cluster must agree on, as one of them sees it.
pub(crate) fn layout(nodes: &[KnownNode]) -> Layout {
    let port_of = |id: &String| {
        let node = nodes.iter().find(|node| node.id == *id);
        node.map(|node| node.port)
    };
    let of_node = |node: &KnownNode| {
        // A node without slots may know its epoch later than the others.
        let epoch = if node.slots.is_empty() { 0 } else { node.epoch };
        let follows = node.follows.as_ref().and_then(port_of);
        (node.port, node.slots.clone(), epoch, follows)
    };
    let mut layout: Layout = nodes.iter().map(of_node).collect();
    layout.sort();
    layout
}

impl KnownNode {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|has| has == flag)
    }

    /// Returns whether the node is the primary of a shard.
    pub(crate) fn is_primary(&self) -> bool {
        self.has("master") && !self.slots.is_empty()
    }

    /// Returns the first slot of the node.
    pub(crate) fn first_slot(&self) -> Option<u16> {
        self.slots.first()?.split('-').next()?.parse().ok()
    }

    /// Returns the slots that are being moved to or from the node. It reports only its own.
    pub(crate) fn moving(&self) -> Vec<String> {
        let ranges = self.slots.iter();
        let in_brackets = ranges.filter_map(|range| range.strip_prefix('['));
        let slots = in_brackets.filter_map(|range| range.split('-').next());
        slots.map(str::to_owned).collect()
    }

    /// Returns whether the node is the owner of a slot.
    pub(crate) fn owns(&self, slot: u16) -> bool {
        self.is_primary()
            && self.slots.iter().any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                match (first.parse::<u16>(), last.parse::<u16>()) {
                    (Ok(first), Ok(last)) => (first..=last).contains(&slot),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
aa 127.0.0.1:7001@17001 myself,master - 0 5 4 connected 0-99 107 [99->-bb]
bb 127.0.0.1:7002@17002,host master - 0 5 2 connected 100-106 108-16383
cc 127.0.0.1:7003@17003 slave,fail aa 0 5 9 disconnected
";

    #[test]
    fn a_line_tells_the_role_the_slots_and_the_ports_of_a_node() {
        let nodes = parse(NODES);
        let [aa, bb, cc] = nodes.as_slice() else {
            panic!("{nodes:?}");
        };
        assert_eq!(reporter(&nodes), Some(aa));
        assert_eq!((bb.port, bb.first_slot()), (7002, Some(100)));
        assert!(aa.is_primary() && bb.is_primary() && !cc.is_primary());
        assert!(aa.owns(99) && aa.owns(107) && !aa.owns(100));
        assert_eq!((aa.moving(), bb.moving()), (vec!["99".to_owned()], vec![]));
        assert!(bb.owns(106) && !bb.owns(107) && bb.owns(16_383));
        assert_eq!(cc.follows.as_deref(), Some("aa"));
        assert!(!cc.owns(0) && !cc.is_linked && bb.is_linked);
    }

    #[test]
    fn nodes_agree_if_they_see_the_same_slots_and_primaries() {
        let nodes = parse(NODES);
        let others = parse(
            &NODES
                .replace("myself,", "")
                .replace("disconnected", "connected"),
        );
        assert_eq!(layout(&nodes), layout(&others));
        let moved = parse(&NODES.replace(" 107", "").replace(" 9 ", " 8 "));
        assert_ne!(layout(&nodes), layout(&moved));
        let promoted = parse(&NODES.replace("slave,fail aa", "slave,fail bb"));
        assert_ne!(layout(&nodes), layout(&promoted));
    }
}

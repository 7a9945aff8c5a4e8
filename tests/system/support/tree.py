# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A small fat tree as a topology in TOML: each node at a leaf of its own, each leaf at two spines."""

SPINES = 2


def _switch(name, ports):
    return f'[[switch]]\nname = "{name}"\nports = {ports}\n'


def _cable(one, other):
    return f'[[cable]]\nends = ["{one}", "{other}"]\n'


def tree(nodes, hcas=1, ports=1):
    """Of nodes node0, node1 and so on. The first ports of a leaf lead to the spines."""
    text = "".join(_switch(f"spine{spine}", nodes) for spine in range(SPINES))
    for node in range(nodes):
        leaf = f"leaf{node}"
        text += _switch(leaf, SPINES + hcas * ports)
        text += "".join(_cable(f"{leaf}:{spine + 1}", f"spine{spine}:{node + 1}") for spine in range(SPINES))
        for hca in range(hcas):
            name = f"node{node}/softib{hca}"
            text += f'[[hca]]\nname = "{name}"\nports = {ports}\n'
            text += "".join(_cable(f"{name}:{port + 1}", f"{leaf}:{SPINES + hca * ports + port + 1}")
                            for port in range(ports))
    return text

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Texts of strangers (NodeDescriptions, names of programs) in pictures. Any bytes may be in them; a
// picture has none of them as markup, and shows each as one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ib::fabric {

// UTF-8 in one line: a byte that is none, and a character that controls the terminal or the
// direction of writing, is U+FFFD. Longer texts end with "..." after `most` characters.
std::string clean_text(std::string_view text, std::size_t most = 200);
std::size_t character_count(std::string_view clean);

// Of a clean text, for content and quoted values of attributes in SVG and HTML.
std::string xml_text(std::string_view clean);
// Of a clean text, between quotes in DOT, where Graphviz shows it as it is.
std::string dot_text(std::string_view clean);
// JSON in a script element of HTML: it has no character that could end the element.
std::string json_in_html(std::string_view json);

}  // namespace ib::fabric

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of a subnet: one HTML document with picture, script and style, which needs nothing else.
#pragma once

#include "fabric/picture/picture.h"
#include "fabric/picture/shown_subnet.h"
#include "softib/pages/fabric_state.h"

#include <cstdint>
#include <string>

namespace ib::softib {

// All that the script shows of each box, line and element: classes and texts, facts for a click.
// Arrays, since a large subnet has tens of thousands.
Json page_state(const fabric::Picture& picture, const fabric::ShownSubnet& subnet);
Json box_state(const fabric::Box& box);
Json line_state(const fabric::Line& line);
Json element_state(const fabric::ShownElement& element);

struct PageUse {
  std::string title;
  std::string nonce;  // for the policy that lets only the page's own script run
  // Of a page that follows state.json: the layout that it shows, from 1; 0: it follows nothing.
  std::uint64_t layout = 0;
  std::uint64_t version = 0;  // of the state in it
};
std::string page_of(const fabric::Picture& picture, const Json& state, const PageUse& use);

extern const char* const kPageScript;
extern const char* const kPageStyle;

}  // namespace ib::softib

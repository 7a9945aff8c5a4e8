// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/path_page.h"

#include <fmt/format.h>

namespace ib::softib {

std::string path_page(const Json& path) {
  std::string text = fmt::format("from LID {} to LID {}\n", number_of(path, "from_lid"),
                                 number_of(path, "to_lid"));
  for (const Json& hop : list_of(path, "hops")) {
    text += fmt::format("  {} port {} -> {} port {}\n", text_of(hop, "from"), number_of(hop, "out"),
                        text_of(hop, "to"), number_of(hop, "in"));
  }
  const std::string why = text_of(path, "why");
  const std::string reason = why.empty() ? "" : ": " + why;
  return text + (path.value("arrives", false) ? "it arrives" : "it does not arrive") + reason +
         "\n";
}

}  // namespace ib::softib

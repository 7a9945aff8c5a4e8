// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/terminal/columns.h"

#include <algorithm>

namespace ib::softib {

std::string wrap_words(const std::string& text, std::size_t width, std::size_t indent,
                       std::size_t taken) {
  std::string result;
  std::size_t column = taken;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", start), text.size());
    const std::size_t length = end - start;
    if (start > 0 && column > 0 && column + length > width) {
      result.back() = '\n';
      result.append(indent, ' ');
      column = indent;
    }
    result.append(text, start, length);
    if (end == text.size()) break;
    result += text[end];
    column = text[end] == '\n' ? 0 : column + length + 1;
    start = end + 1;
  }
  return result;
}

}  // namespace ib::softib

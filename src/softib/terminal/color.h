// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Colour, for terminals only and used sparingly: headings, states of ports, errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

enum class ColorWhen { Auto, Always, Never };
enum class Paint { Heading, Good, Warning, Bad };
enum class Stream { Output, Error };

// Auto: on a terminal, unless NO_COLOR is set to anything (no-color.org), or TERM is "dumb" or not
// set at all.
bool wants_color(ColorWhen when, bool is_terminal, const char* no_color, const char* term);

// Takes "--color WHEN" and "--color=WHEN" out of the words of a command line, anywhere before the
// program of `softib run`. Throws CliError(Usage) about another WHEN.
ColorWhen take_color(std::vector<std::string>& words);

// Sets the colour of the standard streams of this process; the default is none.
void use_color(ColorWhen when);

// The text in a colour, if that stream has colours. Pad it before: the codes have no width, but
// they do have a length.
std::string painted(Paint paint, std::string_view text, Stream stream = Stream::Output);

}  // namespace ib::softib

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settings that programs need on softib and that `softib run` supplies where the user has not made
// them: the table in defaults.cpp. `softib doctor` lists them.
#pragma once

#include "softib/launch/environment.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ib::softib {

enum class DefaultKind : std::uint8_t {
  Variable,  // set unless the variable is set
  Option,    // "option=value", put before the others of a list unless the list has the option
};

struct Default {
  const char* variable;
  const char* value;
  DefaultKind kind;
  const char* program;  // that reads it
  const char* reason;   // in a line: what fails or is slow without it
  // Returns the file in which the user has made this setting; empty if there is none.
  std::string (*file_of_user)(const Environment&) = nullptr;
  // Returns whether programs in this environment need the setting; absent if all of them do.
  bool (*applies)(const Environment&) = nullptr;
};

std::span<const Default> run_defaults();

void add_defaults(Environment& environment);
void remove_defaults(Environment& environment);

// Returns whether memcpy() of older glibc is ten times slower on this processor for some
// alignments: AMD's from Zen 3 on, which `rep movsb` does not suit (glibc's bug 30994).
bool copies_unevenly();

// A row of the table and the outcome for a program that is started in `environment`.
struct SuppliedSetting {
  const Default* setting = nullptr;
  std::string user;  // the user's own value or file, which counts; empty: softib's value
};
std::vector<SuppliedSetting> supplied_settings(const Environment& environment);

}  // namespace ib::softib

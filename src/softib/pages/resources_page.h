// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib resources`: the objects of each program, from the answer to Code::Resources, and
// for what looks like a mistake one sentence each.
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>
#include <vector>

namespace ib::softib {

struct ResourcesShown {
  std::string node;     // empty: of all
  std::string program;  // its name or pid; empty: all
  bool all = false;     // also softibd's own, and all regions
};

// The programs that are to be shown; each gets "hints", a list of sentences.
Json chosen_programs(const Json& answer, const ResourcesShown& shown);

// Mistakes that its objects show, in words. They may pass by: a program that works is looked at
// between two of its steps.
std::vector<std::string> hints_of(const Json& program);

std::string resources_page(const std::string& fabric, const Json& programs,
                           const ResourcesShown& shown);

}  // namespace ib::softib

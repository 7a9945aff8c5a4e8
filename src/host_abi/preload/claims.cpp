// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/claims.h"

#include "verbs/virtual_files.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace ib::host_abi::preload {
namespace {

// The path itself and all below it. '*' stands for the rest of a component.
struct Rule {
  std::string_view pattern;
  Claim claim;
};
constexpr Rule kRules[] = {
    {"/dev/infiniband", Claim::Ours},
    {"/sys/class/infiniband", Claim::Ours},
    {"/sys/class/infiniband_*", Claim::Ours},  // verbs, mad, cm, srp ...
    {"/sys/devices/infiniband", Claim::Ours},
    {"/sys/class/misc/rdma_cm", Claim::Ours},
    {"/sys/devices/virtual/misc/rdma_cm", Claim::Ours},
    {verbs::kDatConf, Claim::Ours},
    {"/sys/class/net/*/device/infiniband", Claim::IfAbsent},
    {"/sys/class/net/*/device/infiniband_*", Claim::IfAbsent},
    // Of ib0. Its other files (mtu, carrier, statistics ...) are the kernel's.
    {"/sys/class/net/*/mode", Claim::IfAbsent},
    {"/sys/class/net/*/pkey", Claim::IfAbsent},
    {"/sys/class/net/*/umcast", Claim::IfAbsent},
    {"/sys/class/net/*/addr_len", Claim::OfTap},
    {"/sys/class/net/*/address", Claim::OfTap},
    {"/sys/class/net/*/broadcast", Claim::OfTap},
    {"/sys/class/net/*/dev_id", Claim::OfTap},
    {"/sys/class/net/*/dev_port", Claim::OfTap},
    {"/sys/class/net/*/type", Claim::OfTap},
};

// Everything in here is compared with the table: the names of its files are too common for a look
// at single components.
constexpr std::string_view kInterfaces = "/sys/class/net/";

// Each claimed path has a component that begins with one of these, also if it is given from the
// directory above.
constexpr std::string_view kWords[] = {"infiniband", "rdma_cm", "dat.conf"};

constexpr std::string_view parent_of(std::string_view pattern) {
  return {pattern.data(), pattern.rfind('/')};
}

constexpr bool has_word(const Rule& rule) {
  const std::string_view last = rule.pattern.substr(rule.pattern.rfind('/') + 1);
  return rule.pattern.starts_with(kInterfaces) ||
         std::any_of(std::begin(kWords), std::end(kWords),
                     [last](std::string_view word) { return last.starts_with(word); });
}
static_assert(std::all_of(std::begin(kRules), std::end(kRules), has_word),
              "may_be_claimed() would not let such a path through");

// Returns the rest of `path` after the pattern, or nullptr if it does not begin with the pattern.
const char* behind(std::string_view pattern, const char* path) {
  for (const char expected : pattern) {
    if (expected == '*') {
      path += std::strcspn(path, "/");
    } else if (*path++ != expected) {
      return nullptr;
    }
  }
  return path;
}

bool is_at_or_below(std::string_view pattern, const Path& path) {
  const char* rest = behind(pattern, path.text);
  return rest != nullptr && (*rest == '\0' || *rest == '/');
}

bool is_exactly(std::string_view pattern, const Path& path) {
  const char* rest = behind(pattern, path.text);
  return rest != nullptr && *rest == '\0';
}

}  // namespace

Claim claim_on(const Path& path) {
  for (const Rule& rule : kRules) {
    if (is_at_or_below(rule.pattern, path)) return rule.claim;
  }
  return Claim::None;
}

bool may_be_claimed(const char* path) {
  // All our paths are in /sys, /dev and /etc. From other directories only ".." leads there; "//"
  // and "/." may be odd spellings of "/".
  const bool elsewhere = path[0] == '/' && std::strchr("sde/.", path[1]) == nullptr;
  if (elsewhere && std::strstr(path, "..") == nullptr) return false;
  if (std::strncmp(path, kInterfaces.data(), kInterfaces.size()) == 0) return true;
  for (;;) {
    for (const std::string_view word : kWords) {
      if (*path == word[0] && std::strncmp(path, word.data(), word.size()) == 0) return true;
    }
    path = std::strchr(path, '/');
    if (path == nullptr) return false;
    ++path;
  }
}

bool may_match_claimed(const char* pattern) {
  return std::any_of(std::begin(kRules), std::end(kRules),
                     [pattern](const Rule& rule) {
                       const std::string_view above = parent_of(rule.pattern);
                       return rule.claim == Claim::Ours &&
                              std::strncmp(pattern, above.data(), above.size() + 1) == 0;
                     }) ||
         std::any_of(std::begin(kWords), std::end(kWords), [pattern](std::string_view word) {
           return std::strstr(pattern, word.data()) != nullptr;
         });
}

bool is_parent(const Path& path) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&path](const Rule& rule) {
    return rule.claim == Claim::Ours && is_exactly(parent_of(rule.pattern), path);
  });
}

bool may_be_parent(const char* path) {
  if (path == nullptr || std::strlen(path) >= kPathSize) return false;
  return path[0] != '/' || std::strstr(path, "dev") != nullptr ||
         std::strstr(path, "class") != nullptr;
}

}  // namespace ib::host_abi::preload

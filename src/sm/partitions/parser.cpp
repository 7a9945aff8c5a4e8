// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parser of partitions.conf: words and marks, then one function for each part of a partition.
#include "sm/partitions/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace ib::sm {
namespace {

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}
bool is_mark(char letter) {
  return letter == '=' || letter == ',' || letter == ':' || letter == ';';
}

struct Token {
  std::string_view text;  // empty: the end of the file
  std::size_t at = 0;
  bool is(std::string_view what) const { return text == what; }
  bool is_word() const { return !text.empty() && !is_mark(text[0]); }
};

// `#` begins a comment. A colon ends a word, but not inside of a GID, which is the value of mgid.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) { advance(); }
  const Token& now() const { return now_; }
  Token take() {
    const Token token = now_;
    advance();
    return token;
  }
  // The current token becomes one that may have colons.
  void widen() {
    std::size_t end = now_.at;
    while (end < text_.size() && !is_space(text_[end]) && text_[end] != ',' && text_[end] != ';' &&
           text_[end] != '#' && text_[end] != '=') {
      ++end;
    }
    now_.text = text_.substr(now_.at, end - now_.at);
    at_ = end;
  }
  std::string_view text() const { return text_; }

 private:
  void advance() {
    skip();
    now_ = {{}, at_};
    if (at_ == text_.size()) return;
    std::size_t end = at_ + 1;
    if (!is_mark(text_[at_])) {
      while (end < text_.size() && !is_mark(text_[end]) && text_[end] != '#' &&
             !is_space(text_[end])) {
        ++end;
      }
    }
    now_.text = text_.substr(at_, end - at_);
    at_ = end;
  }
  void skip() {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '#')) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token now_;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct MemberWord {
  std::string_view text;
  MemberKind kind;
};
constexpr std::array<MemberWord, 5> kMemberWords{{{"ALL", MemberKind::All},
                                                  {"ALL_CAS", MemberKind::AllAdapters},
                                                  {"ALL_SWITCHES", MemberKind::AllSwitches},
                                                  {"ALL_ROUTERS", MemberKind::AllRouters},
                                                  {"SELF", MemberKind::Self}}};

class Parser {
 public:
  Parser(std::string_view text, TextError& error) : words_(text), error_(error) {}

  Result<PartitionList> parse() {
    PartitionList list;
    while (!words_.now().text.empty()) {
      if (!partition(list)) return Status::Malformed;
    }
    finish(list);
    return list;
  }

 private:
  bool partition(PartitionList& list);
  bool flag(Partition& partition);
  bool member(Partition& partition);
  bool group(Partition& partition);
  bool group_flag(std::string_view name, GroupFlags& flags, bool& is_one);
  bool membership(Membership& membership);
  bool value(std::string_view name, std::uint64_t most, std::uint64_t& value);
  bool expect(std::string_view mark, std::string_view where);
  bool fail(const Token& at, std::string_view expected);
  static void add(PartitionList& list, Partition partition);
  void finish(PartitionList& list) const;
  std::uint16_t free_key(const PartitionList& list) const;

  Words words_;
  TextError& error_;
  Membership default_ = Membership::Limited;
};

bool Parser::fail(const Token& at, std::string_view expected) {
  const std::string_view before = words_.text().substr(0, at.at);
  error_.line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
  const std::size_t start = before.rfind('\n');
  error_.column = at.at - (start == std::string_view::npos ? 0 : start + 1) + 1;
  const std::string found =
      at.text.empty() ? "the end of the file" : fmt::format("'{}'", at.text.substr(0, 60));
  error_.text = fmt::format("{} where {} was expected", found, expected);
  return false;
}

bool Parser::expect(std::string_view mark, std::string_view where) {
  if (!words_.now().is(mark)) return fail(words_.now(), fmt::format("'{}' {}", mark, where));
  words_.take();
  return true;
}

bool Parser::value(std::string_view name, std::uint64_t most, std::uint64_t& value) {
  if (!expect("=", fmt::format("after {}", name))) return false;
  const auto number = number_of(words_.now().text);
  if (!number || *number > most) {
    return fail(words_.now(), fmt::format("a number from 0 to {:#x} for {}", most, name));
  }
  value = *number;
  words_.take();
  return true;
}

bool Parser::membership(Membership& membership) {
  const Token word = words_.now();
  if (word.is("full")) {
    membership = Membership::Full;
  } else if (word.is("limited")) {
    membership = Membership::Limited;
  } else if (word.is("both")) {
    membership = Membership::Both;
  } else {
    return fail(word, "full, limited or both");
  }
  words_.take();
  return true;
}

bool Parser::group_flag(std::string_view name, GroupFlags& flags, bool& is_one) {
  std::uint64_t number = 0;
  const auto set = [&](auto& field, std::uint64_t most) {
    words_.take();
    if (!value(name, most, number)) return false;
    field = static_cast<std::remove_reference_t<decltype(field)>>(number);
    return true;
  };
  is_one = true;
  if (name == "rate") return set(flags.rate, 63);
  if (name == "mtu") return set(flags.mtu, 63);
  if (name == "sl") return set(flags.sl, 15);
  if (name == "scope") return set(flags.scope, 15);
  if (name == "Q_Key") return set(flags.q_key, 0xffffffff);
  if (name == "tclass" || name == "TClass") return set(flags.traffic_class, 255);
  if (name == "FlowLabel") return set(flags.flow_label, 0xfffff);
  is_one = false;
  return true;
}

bool Parser::flag(Partition& partition) {
  const Token word = words_.now();
  bool is_group_flag = false;
  if (!group_flag(word.text, partition.flags, is_group_flag)) return false;
  if (is_group_flag) return true;
  if (word.is("ipoib")) {
    partition.has_ipoib = true;
  } else if (word.is("indx0")) {
    partition.is_first = true;
  } else if (word.is("defmember")) {
    words_.take();
    return expect("=", "after defmember") && membership(default_);
  } else {
    return fail(word,
                "a flag (ipoib, indx0, defmember, rate, mtu, sl, scope, Q_Key, tclass or "
                "FlowLabel)");
  }
  words_.take();
  return true;
}

bool Parser::member(Partition& partition) {
  const Token word = words_.now();
  PartitionMember member;
  member.membership = default_;
  const auto* const kind = std::ranges::find_if(
      kMemberWords, [&](const MemberWord& each) { return word.is(each.text); });
  if (kind != kMemberWords.end()) {
    member.kind = kind->kind;
  } else if (const auto guid = word.text.starts_with("0x") ? number_of(word.text) : std::nullopt;
             guid && *guid != 0) {
    member.guid = *guid;
  } else {
    return fail(word,
                "a member (the GUID of a port, as 0x0002c90300000001, or ALL, ALL_CAS, "
                "ALL_SWITCHES, ALL_ROUTERS or SELF) or mgid");
  }
  words_.take();
  if (words_.now().is("=")) {
    words_.take();
    if (!membership(member.membership)) return false;
  }
  partition.members.push_back(member);
  return true;
}

bool Parser::group(Partition& partition) {
  words_.take();
  if (!words_.now().is("=")) return expect("=", "after mgid");
  words_.take();
  words_.widen();
  const Token gid = words_.now();
  if (!gid.text.starts_with("ff") && !gid.text.starts_with("FF")) {
    return fail(gid, "a multicast GID, as ff12:401b::16");
  }
  PartitionGroup group{std::string(gid.text), {}};
  words_.take();
  while (words_.now().is(",")) {
    const Words before = words_;
    words_.take();
    bool is_one = false;
    if (!group_flag(words_.now().text, group.flags, is_one)) return false;
    if (is_one) continue;
    words_ = before;  // a member comes
    break;
  }
  partition.groups.push_back(std::move(group));
  return true;
}

bool Parser::partition(PartitionList& list) {
  Partition partition;
  default_ = Membership::Limited;
  if (words_.now().is_word()) partition.name = std::string(words_.take().text);
  if (words_.now().is("=")) {
    std::uint64_t key = 0;
    const Token at = words_.now();
    if (!value("the P_Key", 0xffff, key)) return false;
    partition.pkey = static_cast<std::uint16_t>(key & kDefaultPartition);
    if (partition.pkey == 0) return fail(at, "'=' and a P_Key other than 0");
  } else if (partition.name == "Default") {
    partition.pkey = kDefaultPartition;
  } else if (partition.name.empty()) {
    return fail(words_.now(), "the name of a partition, or '=' and its P_Key");
  }
  while (words_.now().is(",")) {
    words_.take();
    if (!flag(partition)) return false;
  }
  if (!expect(":", "before the members of the partition")) return false;
  while (!words_.now().is(";")) {
    const bool is_group = words_.now().is("mgid");
    if (is_group ? !group(partition) : !member(partition)) return false;
    if (words_.now().is(",")) {
      words_.take();
    } else if (!words_.now().is(";") && !words_.now().is("mgid")) {
      return fail(words_.now(), "',' and another member, or ';'");
    }
  }
  words_.take();
  if (partition.pkey == 0) partition.pkey = free_key(list);
  add(list, std::move(partition));
  return true;
}

// Of a partition without a P_Key.
std::uint16_t Parser::free_key(const PartitionList& list) const {
  std::uint16_t key = 1;
  while (std::ranges::any_of(list.all, [&](const Partition& each) { return each.pkey == key; })) {
    ++key;
  }
  return key;
}

void Parser::add(PartitionList& list, Partition partition) {
  const auto same =
      std::ranges::find_if(list.all, [&](const auto& each) { return each.pkey == partition.pkey; });
  if (same == list.all.end()) {
    list.all.push_back(std::move(partition));
    return;
  }
  same->members.insert(same->members.end(), partition.members.begin(), partition.members.end());
  same->groups.insert(same->groups.end(), partition.groups.begin(), partition.groups.end());
  same->has_ipoib |= partition.has_ipoib;
  same->is_first |= partition.is_first;
}

void Parser::finish(PartitionList& list) const {
  const bool has_default = std::ranges::any_of(
      list.all, [](const Partition& each) { return each.pkey == kDefaultPartition; });
  if (has_default) return;
  Partition partition;
  partition.name = "Default";
  partition.pkey = kDefaultPartition;
  partition.members = {{MemberKind::All, 0, Membership::Limited},
                       {MemberKind::Self, 0, Membership::Full}};
  list.all.insert(list.all.begin(), std::move(partition));
}

}  // namespace

PartitionList PartitionList::everybody() {
  Partition partition;
  partition.name = "Default";
  partition.pkey = kDefaultPartition;
  partition.has_ipoib = true;
  partition.members = {{MemberKind::All, 0, Membership::Full}};
  return {{std::move(partition)}};
}

Result<PartitionList> parse_partitions(std::string_view text, TextError& error) {
  return Parser(text, error).parse();
}

}  // namespace ib::sm

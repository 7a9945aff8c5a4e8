// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device_names.h"

#include <algorithm>
#include <charconv>

namespace ib::io {
namespace {

constexpr std::string_view kDirectory = "\\device\\ibal";
constexpr std::size_t kGuidDigits = 16;

std::string hex_digits(std::uint64_t guid) {
  std::string text(kGuidDigits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, guid >>= 4)
    *digit = "0123456789abcdef"[guid & 15];
  return text;
}

// Not std::tolower: that depends on the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// False unless it is exactly 16 hexadecimal digits.
bool read_guid(std::string_view text, std::uint64_t& guid) {
  if (text.size() != kGuidDigits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), guid, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string list_of(const std::map<std::uint64_t, DeviceObject*>& directory) {
  std::string text;
  for (const auto& [guid, device] : directory) {
    if (!text.empty()) text += ", ";
    text += hex_digits(guid) + " (" + device->name() + ")";
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Status DeviceNames::add_hca(std::string_view host, std::uint64_t guid, DeviceObject& device) {
  const bool added = hosts_[std::string(host)].emplace(guid, &device).second;
  return added ? Status::Ok : Status::AlreadyExists;
}

void DeviceNames::remove_hca(std::string_view host, std::uint64_t guid) {
  const auto found = hosts_.find(host);
  if (found != hosts_.end()) found->second.erase(guid);
}

Result<DeviceObject*> DeviceNames::resolve(std::string_view host, std::string_view path,
                                           std::string& reason) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    reason = "there is no virtual host " + std::string(host);
    return Status::NotFound;
  }
  const Directory& directory = found->second;
  const std::string_view prefix = path.substr(0, std::min(path.size(), kDirectory.size()));
  const std::string_view rest = path.substr(prefix.size());
  const bool is_below = rest.empty() || rest.front() == '\\';
  if (!is_below || !std::equal(prefix.begin(), prefix.end(), kDirectory.begin(), kDirectory.end(),
                               [](char a, char b) { return lower(a) == b; })) {
    reason = "no device has the name " + std::string(path) +
             "; HCAs are \\Device\\ibal\\<16 hex digits of the GUID>";
    return Status::NotFound;
  }
  if (rest.empty()) {
    if (directory.size() == 1) return &directory.begin()->second->top();
    reason = "\\Device\\ibal stands for the HCA of a host that has one; " + std::string(host) +
             " has: " + list_of(directory);
    return directory.empty() ? Status::NotFound : Status::InvalidParameter;
  }
  std::uint64_t guid = 0;
  if (!read_guid(rest.substr(1), guid)) {
    reason = std::string(rest.substr(1)) + " is not a GUID of 16 hexadecimal digits";
    return Status::InvalidParameter;
  }
  const auto hca = directory.find(guid);
  if (hca == directory.end()) {
    reason = "host " + std::string(host) + " has no HCA " + hex_digits(guid) +
             "; it has: " + list_of(directory);
    return Status::NotFound;
  }
  return &hca->second->top();
}

}  // namespace ib::io

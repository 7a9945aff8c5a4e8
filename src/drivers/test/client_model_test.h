// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: the objects that a client must have according to the answers
// it got, and whether a further answer agrees with them.
#pragma once

#include "drivers/test/hostile_request_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ib::drivers::test {

using Handle = std::pair<Kind, std::uint32_t>;

// An object that a file has or once had; those are its wrong handles.
struct Held {
  std::uint32_t count = 0;      // how often it was given and not taken back
  std::uint64_t disturbed = 0;  // when it last came, its end was requested, or it went
  std::uint64_t released = 0;   // when its count last became zero
  std::uint32_t under_way = 0;  // requests that name it
  std::uint32_t ends = 0;       // of these: requests that destroy it
  std::vector<Handle> uses;
  std::set<std::pair<verbs::Gid, std::uint16_t>> groups;
};

// The objects of a file; file 0 has channels and backings.
class Book {
 public:
  Held& at(const Handle& handle) { return held_[handle]; }
  const Held* find(const Handle& handle) const {
    const auto found = held_.find(handle);
    return found == held_.end() ? nullptr : &found->second;
  }
  bool has(const Handle& handle) const { return count(handle) > 0; }
  std::uint32_t count(const Handle& handle) const {
    const Held* held = find(handle);
    return held != nullptr ? held->count : 0;
  }
  // Returns true if the file had the object at some time since `when`.
  bool had_since(const Handle& handle, std::uint64_t when) const {
    const Held* held = find(handle);
    return held != nullptr && (held->count > 0 || held->released >= when);
  }
  // Returns true if the file had the object all the time since then, and no other request destroys
  // it.
  bool had_undisturbed(const Handle& handle, std::uint64_t since, std::uint32_t own_ends) const {
    const Held* held = find(handle);
    return held != nullptr && held->count > 0 && held->ends == own_ends && held->disturbed <= since;
  }
  // Returns true if an object depends on it that no request is changing.
  bool has_certain_user(const Handle& handle) const {
    return has_user(handle, [](const Held& user) { return user.under_way == 0; });
  }
  bool has_user(const Handle& handle) const {
    return has_user(handle, [](const Held&) { return true; });
  }
  // Handles of a kind: those that the file has if `now`, else those that it had.
  std::vector<std::uint32_t> all(Kind kind, bool now) const {
    std::vector<std::uint32_t> handles;
    for (const auto& [handle, held] : held_) {
      if (handle.first == kind && (held.count > 0) == now) handles.push_back(handle.second);
    }
    return handles;
  }

 private:
  template <class Counts>
  bool has_user(const Handle& handle, Counts&& counts) const {
    return std::any_of(held_.begin(), held_.end(), [&](const auto& entry) {
      const Held& user = entry.second;
      return user.count > 0 && counts(user) &&
             std::find(user.uses.begin(), user.uses.end(), handle) != user.uses.end();
    });
  }

  std::map<Handle, Held> held_;
};

// The buffer was accepted, so it has the right size.
template <class T>
T read_as(std::span<const std::byte> in) {
  T value;
  IB_ASSERT(in.size() == sizeof value);
  std::memcpy(static_cast<void*>(&value), in.data(), sizeof value);
  return value;
}

// Returns the objects that a new object depends on, from the request that made it.
inline std::vector<Handle> uses_of(Code code, std::span<const std::byte> in) {
  std::vector<Handle> uses;
  const auto add = [&](Kind kind, std::uint32_t handle) {
    if (handle != control::kNoIndex) uses.emplace_back(kind, handle);
  };
  switch (number_of(code)) {
    case number_of(Code::RegMr): {
      const auto request = read_as<control::RegMrIn>(in);
      add(Kind::Pd, request.pd);
      if (request.flags == 0) add(Kind::DeviceMemory, request.dm);
      break;
    }
    case number_of(Code::AllocMw): add(Kind::Pd, read_as<control::AllocMwIn>(in).pd); break;
    case number_of(Code::CreateAh): add(Kind::Pd, read_as<control::CreateAhIn>(in).pd); break;
    case number_of(Code::CreateCq): add(kChannel, read_as<control::CreateCqIn>(in).channel); break;
    case number_of(Code::OpenQp): add(Kind::Xrcd, read_as<control::OpenQpIn>(in).xrcd); break;
    case number_of(Code::CreateSrq): {
      const auto request = read_as<control::CreateSrqIn>(in);
      add(Kind::Pd, request.pd);
      if (request.type == verbs::SrqType::Basic) break;
      add(Kind::Xrcd, request.xrcd);
      add(Kind::Cq, request.cq);
      break;
    }
    case number_of(Code::CreateQp): {
      const auto request = read_as<control::CreateQpIn>(in);
      if (request.type == verbs::QpType::XrcRecv) {
        add(Kind::Xrcd, request.xrcd);
        break;
      }
      add(Kind::Pd, request.pd);
      add(Kind::Cq, request.send_cq);
      if (request.type == verbs::QpType::XrcSend) break;
      add(Kind::Cq, request.recv_cq);
      add(Kind::Srq, request.srq);
      break;
    }
    default: break;
  }
  return uses;
}

// Changes the dependencies of a region like its reregistration.
inline void change_uses(std::vector<Handle>& uses, const control::ReregMrIn& in) {
  const auto replace = [&](Kind kind, std::uint32_t handle) {
    std::erase_if(uses, [&](const Handle& used) { return used.first == kind; });
    if (handle != control::kNoIndex) uses.emplace_back(kind, handle);
  };
  if ((in.change & 2) != 0) replace(Kind::Pd, in.to.pd);
  if ((in.change & 1) != 0) {
    replace(Kind::DeviceMemory, in.to.flags == 0 ? in.to.dm : control::kNoIndex);
  }
}

}  // namespace ib::drivers::test

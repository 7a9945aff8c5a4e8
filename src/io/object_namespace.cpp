// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/object_namespace.h"

#include <algorithm>
#include <utility>

namespace ib::io {
namespace {

constexpr int kMaxReparse = 16;

// Not std::tolower: that depends on the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "\a\b" -> "a", the rest "\b". Returns false if nothing is left, or it is not a path.
bool next(std::string_view& path, std::string_view& name) {
  if (path.empty() || path.front() != '\\') return false;
  path.remove_prefix(1);
  name = path.substr(0, path.find('\\'));
  path.remove_prefix(name.size());
  return !name.empty();
}

}  // namespace

bool ObjectNamespace::ByName::operator()(std::string_view a, std::string_view b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char x, char y) { return lower(x) < lower(y); });
}

struct ObjectNamespace::Object {
  explicit Object(Kind k) : kind(k) {}
  Kind kind;
  std::map<std::string, std::unique_ptr<Object>, ByName> entries;  // Directory
  bool stands_for_only_entry = false;
  DeviceObject* device = nullptr;
  std::string target;  // Link

  std::string names() const {
    std::string text;
    for (const auto& [name, object] : entries) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "nothing" : text;
  }
};

ObjectNamespace::ObjectNamespace() {
  hosts_.emplace("", std::make_unique<Object>(Kind::Directory));
}

ObjectNamespace::~ObjectNamespace() = default;

ObjectNamespace::Object* ObjectNamespace::directory_of(std::string_view host, std::string_view path,
                                                       std::string_view& name) const {
  const auto root = hosts_.find(host);
  if (root == hosts_.end()) return nullptr;
  Object* directory = root->second.get();
  if (!next(path, name)) return nullptr;
  while (!path.empty()) {
    const auto found = directory->entries.find(name);
    if (found == directory->entries.end() || found->second->kind != Kind::Directory) return nullptr;
    directory = found->second.get();
    if (!next(path, name)) return nullptr;
  }
  return directory;
}

Status ObjectNamespace::add(std::string_view host, std::string_view path,
                            std::unique_ptr<Object> object) {
  if (hosts_.find(host) == hosts_.end()) {
    hosts_.emplace(std::string(host), std::make_unique<Object>(Kind::Directory));
  }
  std::string_view name;
  Object* directory = directory_of(host, path, name);
  if (directory == nullptr) return Status::NotFound;
  const bool added = directory->entries.emplace(std::string(name), std::move(object)).second;
  return added ? Status::Ok : Status::AlreadyExists;
}

Status ObjectNamespace::add_directory(std::string_view host, std::string_view path,
                                      bool stands_for_only_entry) {
  auto object = std::make_unique<Object>(Kind::Directory);
  object->stands_for_only_entry = stands_for_only_entry;
  return add(host, path, std::move(object));
}

Status ObjectNamespace::add_device(std::string_view host, std::string_view path,
                                   DeviceObject& device) {
  auto object = std::make_unique<Object>(Kind::Device);
  object->device = &device;
  return add(host, path, std::move(object));
}

Status ObjectNamespace::add_link(std::string_view host, std::string_view path,
                                 std::string_view target) {
  auto object = std::make_unique<Object>(Kind::Link);
  object->target = target;
  return add(host, path, std::move(object));
}

Status ObjectNamespace::remove(std::string_view host, std::string_view path) {
  std::string_view name;
  Object* directory = directory_of(host, path, name);
  if (directory == nullptr) return Status::NotFound;
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return Status::NotFound;
  if (!found->second->entries.empty()) return Status::DeviceBusy;
  directory->entries.erase(found);
  return Status::Ok;
}

// Follows no link.
const ObjectNamespace::Object* ObjectNamespace::find(std::string_view host,
                                                     std::string_view path) const {
  const auto root = hosts_.find(host);
  if (root == hosts_.end()) return nullptr;
  if (path.empty() || path == "\\") return root->second.get();
  std::string_view name;
  const Object* directory = directory_of(host, path, name);
  if (directory == nullptr) return nullptr;
  const auto found = directory->entries.find(name);
  return found == directory->entries.end() ? nullptr : found->second.get();
}

// The longest prefix that names an entry, and its length; the host's own tree hides the common one.
const ObjectNamespace::Object* ObjectNamespace::find_deepest(std::string_view host,
                                                             std::string_view path,
                                                             std::size_t& end) const {
  for (end = path.size();; end = path.rfind('\\', end - 1)) {
    const Object* own = find(host, path.substr(0, end));
    if (own != nullptr) return own;
    if (const Object* common = find("", path.substr(0, end)); common != nullptr) return common;
  }
}

Result<const ObjectNamespace::Object*> ObjectNamespace::walk(std::string_view host,
                                                             std::string path, bool to_device,
                                                             std::string& reason) const {
  const std::string asked = path;
  for (int reparsed = 0; reparsed <= kMaxReparse; ++reparsed) {
    std::size_t end = path.size();
    const Object* deepest = find_deepest(host, path, end);
    const std::string rest = path.substr(end);
    if (deepest->kind == Kind::Link) {
      path = deepest->target + rest;
      continue;
    }
    if (!rest.empty() && rest != "\\") {
      reason = "no device has the name " + asked;
      if (deepest->kind == Kind::Directory && end > 0) {
        reason += "; " + path.substr(0, end) + " has: " + deepest->names();
      }
      return Status::NotFound;
    }
    if (to_device && deepest->kind == Kind::Directory) {
      if (deepest->stands_for_only_entry && deepest->entries.size() == 1) {
        path += "\\" + deepest->entries.begin()->first;
        continue;
      }
      reason = asked + " is a directory" +
               (deepest->stands_for_only_entry ? " that stands for its entry if it has one" : "") +
               "; it has: " + deepest->names();
      return deepest->entries.empty() ? Status::NotFound : Status::InvalidParameter;
    }
    return deepest;
  }
  reason = asked + " leads round in a circle";
  return Status::LimitExceeded;
}

Result<DeviceObject*> ObjectNamespace::open(std::string_view host, std::string_view path,
                                            std::string& reason) const {
  if (path.empty() || path.front() != '\\') {
    reason = "\"" + std::string(path) + "\" is no name of a device; names begin with \\Device\\";
    return Status::InvalidParameter;
  }
  IB_TRY(object, walk(host, std::string(path), true, reason));
  return &object->device->top();
}

Result<std::vector<ObjectNamespace::Entry>> ObjectNamespace::list(std::string_view host,
                                                                  std::string_view path,
                                                                  std::string& reason) const {
  std::string clean(path);
  if (!clean.empty() && clean.front() != '\\') clean.insert(0, 1, '\\');
  while (clean.ends_with('\\')) clean.pop_back();
  IB_TRY(object, walk(host, clean, false, reason));
  std::vector<Entry> entries;
  const auto add = [&entries](const std::string& name, const Object& found) {
    Entry entry{name, found.kind, found.target, {}};
    if (found.device != nullptr) {
      DeviceObject& top = found.device->top();
      entry.device = found.device->name() + " (" + top.driver().name + ")";
    }
    entries.push_back(std::move(entry));
  };
  if (object->kind != Kind::Directory) {
    add(std::string(clean.substr(clean.rfind('\\') + 1)), *object);
    return entries;
  }
  for (const auto& [name, found] : object->entries) add(name, *found);
  // A directory of both trees shows both.
  if (const Object* common = find("", clean); common != nullptr && common != object) {
    for (const auto& [name, found] : common->entries) {
      if (!object->entries.contains(name)) add(name, *found);
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return ByName()(a.name, b.name); });
  return entries;
}

}  // namespace ib::io

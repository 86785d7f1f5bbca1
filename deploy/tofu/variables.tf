variable "region" {
  description = "region of the machines"
  type        = string
  default     = "eu-west-1"
}

variable "image_id" {
  description = "AMI with cloud-init, systemd and Python 3.11 or newer, such as Debian 13"
  type        = string
}

variable "subnet_id" {
  description = "subnet of all machines; they need a way to pip's index"
  type        = string
}

variable "key_name" {
  description = "key pair for ssh"
  type        = string
}

variable "ssh_from" {
  description = "networks that may use ssh"
  type        = list(string)
  default     = []
}

variable "server_type" {
  description = "instance type of the server"
  type        = string
  default     = "m7i.large"
}

variable "server_disk_gib" {
  description = "disk of the server, for all results"
  type        = number
  default     = 100
}

variable "server_package" {
  description = "what pip installs on the server"
  type        = string
  default     = "prony[server]"
}

variable "agents" {
  description = "number of agents, once agent_token is set"
  type        = number
  default     = 2
}

variable "agent_type" {
  description = "instance type of the agents; one without burst credits"
  type        = string
  default     = "c7i.2xlarge"
}

variable "agent_tenancy" {
  description = "dedicated keeps other customers off the host, at a price"
  type        = string
  default     = "default"
}

variable "agent_disk_gib" {
  description = "disk of an agent, for models and results on their way"
  type        = number
  default     = 50
}

variable "agent_package" {
  description = "what pip installs on the agents"
  type        = string
  default     = "prony[onnx]"
}

variable "agent_profile" {
  description = "instance profile whose role reads models from S3; null: none"
  type        = string
  default     = null
}

variable "agent_token" {
  description = "token that agents enrol with; without one there are no agents. It stays in the state and in user data"
  type        = string
  default     = ""
  sensitive   = true
}
